#include "posenc/positions/functional/token_embedding.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/embedding.h>

#include "support/compare.h"
#include "support/devices.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;
using posenc::testing::OnEachDevice;

class TokenEmbedding : public OnEachDevice {
 protected:
  torch::Tensor weight() const { return torch::randn({11, 6}).to(device()); }
  torch::Tensor ids(std::vector<int64_t> values) const {
    return torch::tensor(values, torch::kLong).to(device());
  }
};
POSENC_ON_EACH_DEVICE(TokenEmbedding);

TEST_P(TokenEmbedding, IsARowTimesTheScale) {
  const auto w = weight();
  const auto i = ids({3, 0, 10, 3});
  EXPECT_TRUE(bit_equal(token_embedding(i, w), w.index_select(0, i)));
  EXPECT_TRUE(bit_equal(token_embedding(i, w, Scale(0.5)), w.index_select(0, i) * 0.5));
  EXPECT_TRUE(
      bit_equal(token_embedding(i, w, Scale::SqrtDim), w.index_select(0, i) * std::pow(6.0, 0.5)));
}

TEST_P(TokenEmbedding, TakesAnyShapeAndBothIdTypes) {
  const auto w = weight();
  for (const auto& shape : std::vector<std::vector<int64_t>>{{}, {0}, {4}, {2, 2}, {2, 1, 2}}) {
    const auto i = torch::randint(0, 11, shape, torch::kLong).to(device());
    auto expected = shape;
    expected.push_back(6);
    EXPECT_EQ(token_embedding(i, w).sizes(), expected);
    EXPECT_TRUE(bit_equal(token_embedding(i.to(torch::kInt), w), token_embedding(i, w)));
  }
}

TEST_P(TokenEmbedding, ABatchEqualsItsRowsAndStridesDoNotMatter) {
  const auto w = weight();
  const auto i = torch::randint(0, 11, {4, 5}, torch::kLong).to(device());
  const auto batch = token_embedding(i, w, Scale::SqrtDim);
  for (int64_t b = 0; b < 4; ++b) {
    EXPECT_TRUE(bit_equal(batch[b], token_embedding(i[b], w, Scale::SqrtDim)));
  }
  EXPECT_TRUE(
      bit_equal(token_embedding(i.t(), w, Scale::SqrtDim), batch.transpose(0, 1).contiguous()));
}

TEST_P(TokenEmbedding, ThePaddingRowGetsNoGradient) {
  for (const int64_t padding : {2L, -9L}) {
    auto w = weight().requires_grad_(true);
    token_embedding(ids({2, 3, 2, 4}), w, Scale(3.0), padding).sum().backward();
    EXPECT_TRUE(w.grad()[2].eq(0).all().item<bool>());
    EXPECT_TRUE(w.grad()[3].eq(3).all().item<bool>());
  }
}

TEST(TokenEmbeddingErrors, NameTheIdAndItsPlace) {
  const auto w = torch::randn({11, 6});
  EXPECT_ERROR(token_embedding(torch::tensor({{1, 2}, {3, 11}}), w), c10::IndexError,
               "[TokenEmbedding] every id must lie in [0, vocab_size) = [0, 11). Got 11 at index "
               "[1, 1]");
  EXPECT_ERROR(token_embedding(torch::tensor({1, -1}), w), c10::IndexError, "Got -1 at index [1]");
  EXPECT_ERROR(token_embedding(torch::tensor(99), w), c10::IndexError, "Got 99 at index []");
  EXPECT_ERROR(token_embedding(torch::tensor({1.0f}), w), c10::TypeError,
               "ids must be integers. Got Float");
  EXPECT_ERROR(token_embedding(torch::tensor({true}), w), c10::TypeError,
               "ids must be integers. Got Bool");
  EXPECT_ERROR(token_embedding(torch::tensor({1}), w[0]), c10::ValueError,
               "weight must be (vocab_size, d_model). Got [6]");
  EXPECT_ERROR(token_embedding(torch::tensor({1}), w, Scale::None, 11), c10::ValueError,
               "padding_idx must lie in [-11, 11). Got 11");
  EXPECT_ERROR(token_embedding(torch::tensor({1}), w, Scale::None, -12), c10::ValueError,
               "Got -12");
  EXPECT_ERROR(
      token_embedding(torch::empty({1}, torch::dtype(torch::kLong).device(torch::kMeta)), w),
      c10::ValueError, "ids must be on the table's device cpu. Got meta");
}

}  // namespace
}  // namespace posenc::functional
