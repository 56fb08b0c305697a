#include "posenc/models/functional/quantize.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "support/compare.h"

namespace posenc::testing {
namespace {

namespace F = posenc::functional;
using F::EmbeddingPrecision;

// quantize_embeddings() of sentence-transformers, operation by operation.
torch::Tensor levels(const torch::Tensor& x, const torch::Tensor& ranges) {
  const auto start = ranges[0];
  auto step = (ranges[1] - start) / 255;
  step = torch::where(step == 0, torch::ones_like(step), step);
  return torch::clip(torch::floor((x - start) / step), 0, 255);
}

// numpy.packbits(x > 0, axis=-1).
torch::Tensor packed(const torch::Tensor& x) {
  auto bits = torch::zeros({x.size(0), (x.size(1) + 7) / 8, 8}, torch::kLong);
  bits.view({x.size(0), -1}).narrow(1, 0, x.size(1)).copy_(x > 0);
  return (bits * torch::tensor({128, 64, 32, 16, 8, 4, 2, 1})).sum(-1);
}

TEST(Quantize, LevelsAreThoseOfSentenceTransformers) {
  torch::manual_seed(1);
  for (const int64_t width : {1, 7, 16, 33, 384}) {
    const auto corpus = torch::randn({50, width}), queries = 2 * torch::randn({9, width});
    corpus.select(1, 0).fill_(3.0);  // a step of 1
    const auto ranges = torch::stack({std::get<0>(corpus.min(0)), std::get<0>(corpus.max(0))});
    EXPECT_TRUE(bit_equal(F::embedding_ranges(corpus), ranges));
    const auto own = F::quantize_embeddings(corpus, EmbeddingPrecision::UInt8);
    EXPECT_TRUE(bit_equal(own.ranges, ranges));
    EXPECT_TRUE(bit_equal(own.embeddings, levels(corpus, ranges).to(torch::kByte)));
    const auto given = F::quantize_embeddings(queries, EmbeddingPrecision::Int8, ranges);
    EXPECT_TRUE(bit_equal(given.ranges, ranges));
    EXPECT_TRUE(bit_equal(given.embeddings, (levels(queries, ranges) - 128).to(torch::kChar)));
    const auto one =
        F::quantize_embeddings(queries.narrow(0, 0, 1), EmbeddingPrecision::UInt8, ranges);
    EXPECT_TRUE(
        bit_equal(one.embeddings, levels(queries[0], ranges).to(torch::kByte).unsqueeze(0)));
  }
}

TEST(Quantize, BitsBeginWithTheHighestOfAByte) {
  torch::manual_seed(2);
  for (const int64_t width : {1, 8, 30, 63, 64, 65, 200, 1024}) {
    const auto x = torch::randn({7, width}) * (torch::rand({7, width}) < 0.8);  // zeros are not set
    const auto expected = packed(x);
    EXPECT_TRUE(bit_equal(F::pack_bits(x), expected.to(torch::kByte)));
    const auto unsigned_bits = F::quantize_embeddings(x, EmbeddingPrecision::UBinary);
    EXPECT_TRUE(bit_equal(unsigned_bits.embeddings, expected.to(torch::kByte)));
    EXPECT_FALSE(unsigned_bits.ranges.defined());
    EXPECT_TRUE(bit_equal(F::quantize_embeddings(x, EmbeddingPrecision::Binary).embeddings,
                          (expected - 128).to(torch::kChar)));
  }
}

TEST(Quantize, TheHammingDistanceCountsBits) {
  torch::manual_seed(3);
  for (const int64_t width : {1, 30, 64, 384, 1030}) {
    const auto a = torch::randn({5, width}), b = torch::randn({700, width});
    const auto expected = ((a > 0).unsqueeze(1) != (b > 0).unsqueeze(0)).sum(-1).to(torch::kInt);
    EXPECT_TRUE(bit_equal(F::hamming_distance(F::pack_bits(a), F::pack_bits(b)), expected));
    const auto signed_bits = [](const torch::Tensor& x) {
      return F::quantize_embeddings(x, EmbeddingPrecision::Binary).embeddings;
    };
    EXPECT_TRUE(bit_equal(F::hamming_distance(signed_bits(a), signed_bits(b)), expected));
  }
}

TEST(Quantize, TakesWhatIsNotContiguousAndHalfTypes) {
  const auto x = torch::randn({6, 40});
  EXPECT_TRUE(bit_equal(F::pack_bits(x.t()), F::pack_bits(x.t().contiguous())));
  const auto half = x.to(torch::kHalf);
  EXPECT_TRUE(bit_equal(
      F::quantize_embeddings(half, EmbeddingPrecision::Int8).embeddings,
      F::quantize_embeddings(half.to(torch::kFloat), EmbeddingPrecision::Int8).embeddings));
}

TEST(Quantize, NoVectorsStayNone) {
  const auto none = torch::zeros({0, 12});
  EXPECT_EQ(F::quantize_embeddings(none, EmbeddingPrecision::Int8).embeddings.sizes(),
            (std::vector<int64_t>{0, 12}));
  EXPECT_EQ(F::pack_bits(none).sizes(), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(F::hamming_distance(F::pack_bits(none), F::pack_bits(torch::ones({3, 12}))).sizes(),
            (std::vector<int64_t>{0, 3}));
}

TEST(Quantize, Errors) {
  const auto x = torch::randn({2, 3});
  EXPECT_ERROR(F::quantize_embeddings(x[0], EmbeddingPrecision::Int8), c10::ValueError,
               "[quantize_embeddings] x must be (N, D). Got [3]");
  EXPECT_ERROR(F::pack_bits(x.to(torch::kLong)), c10::TypeError,
               "[pack_bits] x must be floating-point. Got Long");
  EXPECT_ERROR(F::quantize_embeddings(x.narrow(0, 0, 1), EmbeddingPrecision::Int8), c10::ValueError,
               "[embedding_ranges] ranges must be those of two vectors or more, such as those of a "
               "corpus. Got 1");
  EXPECT_ERROR(F::quantize_embeddings(x, EmbeddingPrecision::UInt8, torch::ones({2, 4})),
               c10::ValueError, "[quantize_embeddings] ranges must be (2, D) = (2, 3). Got [2, 4]");
  EXPECT_ERROR(F::quantize_embeddings(x, EmbeddingPrecision::Binary, torch::ones({2, 3})),
               c10::ValueError,
               "[quantize_embeddings] ranges must not be given for bits, which have none");
  auto strange = x.clone();
  strange[1][2].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_ERROR(F::embedding_ranges(strange), c10::ValueError,
               "[embedding_ranges] embeddings must be finite");
  EXPECT_ERROR(F::quantize_embeddings(strange, EmbeddingPrecision::Int8, torch::ones({2, 3})),
               c10::ValueError, "[quantize_embeddings] embeddings must be finite");
  EXPECT_ERROR(F::quantize_embeddings(x, EmbeddingPrecision::Int8, strange), c10::ValueError,
               "[quantize_embeddings] ranges must be finite");
  const auto bits = F::pack_bits(x);
  EXPECT_ERROR(F::hamming_distance(x, bits), c10::TypeError,
               "[hamming_distance] bits must be packed in uint8 or int8. Got Float");
  EXPECT_ERROR(F::hamming_distance(bits, bits.to(torch::kChar)), c10::TypeError,
               "[hamming_distance] both must have one dtype. Got Byte and Char");
  EXPECT_ERROR(F::hamming_distance(bits, F::pack_bits(torch::randn({2, 9}))), c10::ValueError,
               "[hamming_distance] both must have one width. Got [2, 1] and [2, 2]");
}

}  // namespace
}  // namespace posenc::testing
