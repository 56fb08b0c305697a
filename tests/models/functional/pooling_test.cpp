#include "posenc/models/functional/pooling.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <limits>

#include "support/compare.h"

namespace posenc::testing {
namespace {

namespace F = posenc::functional;

// The formula of sentence-transformers, operation by operation.
torch::Tensor mean_of_sentence_transformers(const torch::Tensor& hidden,
                                            const torch::Tensor& mask) {
  const auto expanded = mask.unsqueeze(-1).expand(hidden.sizes()).to(hidden.dtype());
  return torch::sum(hidden * expanded, 1) / torch::clamp_min(expanded.sum(1), 1e-9);
}

TEST(Pooling, TheMeanOfTokensHasTheBitsOfSentenceTransformers) {
  const auto hidden = torch::randn({3, 7, 5});
  const auto mask =
      torch::tensor({{1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 1, 1}});
  for (const auto type : {torch::kLong, torch::kInt, torch::kBool}) {
    EXPECT_TRUE(bit_equal(F::mean_pool(hidden, mask.to(type)),
                          mean_of_sentence_transformers(hidden, mask)));
  }
  EXPECT_TRUE(
      bit_equal(F::mean_pool(hidden), mean_of_sentence_transformers(hidden, torch::ones({3, 7}))));
  EXPECT_TRUE(
      bit_equal(F::mean_pool(hidden, torch::zeros({3, 7}, torch::kLong)), torch::zeros({3, 5})));
}

TEST(Pooling, TheMeanOfNoTokensIsZeroInHalfPrecision) {
  for (const auto type : {torch::kHalf, torch::kBFloat16}) {
    const auto hidden = torch::randn({2, 3, 5}).to(type);
    const auto mask = torch::tensor({{0, 0, 0}, {1, 1, 0}});
    const auto mean = F::mean_pool(hidden, mask);
    EXPECT_TRUE(bit_equal(mean[0], torch::zeros({5}, type)));
    EXPECT_TRUE(bit_equal(mean[1], mean_of_sentence_transformers(hidden, mask)[1]));
  }
}

// 65,504 is the largest number in float16.
TEST(Pooling, ASumBeyondTheRangeOfFloat16HasAMean) {
  const auto hidden = torch::full({1, 8192, 3}, 10.0, torch::kHalf);
  const auto mask = torch::ones({1, 8192}, torch::kLong);
  EXPECT_TRUE(bit_equal(F::mean_pool(hidden, mask), torch::full({1, 3}, 10.0, torch::kHalf)));
  EXPECT_TRUE(bit_equal(F::mean_pool(hidden), torch::full({1, 3}, 10.0, torch::kHalf)));
}

TEST(Pooling, AMaskedRowDoesNotCountWhateverItHolds) {
  auto hidden = torch::randn({1, 3, 4});
  const auto mask = torch::tensor({{1, 1, 0}});
  const auto mean = F::mean_pool(hidden, mask);
  hidden[0][2].fill_(std::numeric_limits<float>::quiet_NaN());
  hidden.requires_grad_();
  EXPECT_TRUE(bit_equal(F::mean_pool(hidden, mask), mean));
  F::mean_pool(hidden, mask).sum().backward();
  EXPECT_TRUE(bit_equal(hidden.grad()[0][2], torch::zeros({4})));
}

TEST(Pooling, NormalizedVectorsHaveLengthOne) {
  const auto x = torch::randn({4, 6});
  const auto length = x.norm(2, -1, true).clamp_min(1e-12).expand_as(x);
  EXPECT_TRUE(bit_equal(F::l2_normalize(x), x / length));
  EXPECT_TRUE(bit_equal(F::l2_normalize(torch::zeros({2, 3})), torch::zeros({2, 3})));
  EXPECT_TRUE(bit_equal(F::first_pool(x.unsqueeze(0)), x.narrow(0, 0, 1)));
}

TEST(Pooling, Errors) {
  const auto hidden = torch::randn({2, 3, 4});
  EXPECT_ERROR(F::mean_pool(hidden[0]), c10::ValueError, "[mean_pool] hidden must be (B, L, D)");
  EXPECT_ERROR(F::mean_pool(hidden.to(torch::kLong)), c10::TypeError,
               "[mean_pool] hidden must be floating-point. Got Long");
  EXPECT_ERROR(F::mean_pool(hidden, torch::ones({2, 3})), c10::TypeError,
               "[mean_pool] attention_mask must be bool or an integer type. Got Float");
  EXPECT_ERROR(F::mean_pool(hidden, torch::ones({3, 2}, torch::kLong)), c10::ValueError,
               "[mean_pool] attention_mask must be (B, L) = [2, 3]. Got [3, 2]");
  EXPECT_ERROR(F::first_pool(hidden[0]), c10::ValueError, "[first_pool] hidden must be (B, L, D)");
  EXPECT_ERROR(F::first_pool(hidden.narrow(1, 0, 0)), c10::ValueError,
               "[first_pool] sequences must have a token. Got [2, 0, 4]");
  EXPECT_ERROR(F::l2_normalize(torch::ones({2}, torch::kLong)), c10::TypeError,
               "[l2_normalize] x must be floating-point. Got Long");
  EXPECT_ERROR(F::l2_normalize(torch::tensor(1.0)), c10::ValueError,
               "[l2_normalize] x must be (..., D). Got a scalar");
}

}  // namespace
}  // namespace posenc::testing
