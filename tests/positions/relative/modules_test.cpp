#include <gtest/gtest.h>
#include <torch/nn/init.h>
#include <torch/types.h>

#include <sstream>

#include "posenc/positions/nn/document_position_bias.h"
#include "posenc/positions/nn/grid_position_bias.h"
#include "posenc/positions/nn/relative_attention.h"
#include "posenc/positions/nn/relative_position_bias.h"
#include "posenc/positions/relative/bias.h"
#include "support/compare.h"

namespace posenc {
namespace {

using relative::Buckets;
using relative::Clamp;
using relative::Contract;
using relative::Shift;
using testing::bit_equal;

TEST(RelativePositionBiasModule, IsTheBiasOfItsWeight) {
  RelativePositionBias module(Buckets{32, 128, false}, 3);
  EXPECT_EQ(module->weight.sizes(), at::IntArrayRef({32, 3}));
  EXPECT_TRUE(bit_equal(module->forward(4, 9, 5),
                        relative_position_bias(module->weight, 4, 9, Buckets{32, 128, false}, 5)));
  const auto at = torch::tensor({{0, 4, 100}}, torch::kLong);
  EXPECT_TRUE(bit_equal(module->at_positions(at, at),
                        relative_position_bias(module->weight, at, at, Buckets{32, 128, false})));
  module->forward(3, 3).sum().backward();
  EXPECT_EQ(module->weight.grad().sum().item<float>(), 27);
  std::ostringstream text;
  text << *module;
  EXPECT_EQ(text.str(),
            "posenc::RelativePositionBias(index=Buckets(bidirectional=false), num_heads=3)");
}

TEST(GridPositionBiasModule, IsTheBiasOfItsTable) {
  GridPositionBias module(relative::Grid{2, 3}, 2);
  EXPECT_EQ(module->weight.sizes(), at::IntArrayRef({3 * 5 + 3, 2}));
  torch::nn::init::normal_(module->weight);
  const auto own = module->forward();
  EXPECT_EQ(own.sizes(), at::IntArrayRef({1, 2, 7, 7}));
  // The class token's entries are the last rows.
  EXPECT_TRUE(bit_equal(own[0][1][0].slice(0, 1), module->weight[15][1].expand({6})));
  EXPECT_TRUE(bit_equal(own[0][1].slice(0, 1).select(1, 0), module->weight[16][1].expand({6})));
  EXPECT_EQ(own[0][1][0][0].item<float>(), module->weight[17][1].item<float>());
  EXPECT_EQ(module->forward(relative::Grid{4, 1}).sizes(), at::IntArrayRef({1, 2, 5, 5}));
  module->forward().sum().backward();
  EXPECT_EQ(module->weight.grad()[17].sum().item<float>(), 2);
  std::ostringstream text;
  text << *module;
  EXPECT_EQ(text.str(), "posenc::GridPositionBias(grid=(height=2, width=3), num_heads=2)");
}

TEST(DocumentPositionBiasModule, AddsPlacesAndBoxes) {
  using Options = DocumentPositionBiasOptions;
  const Buckets buckets{8, 20};
  DocumentPositionBias module(Options(2, buckets).boxes(buckets).scale(0.5));
  const auto bbox = torch::randint(0, 30, {3, 4, 4});
  const auto left = bbox.select(2, 0), lower = bbox.select(2, 3);
  const auto expected = (relative_position_bias(module->places->weight, 4, 4, buckets) +
                         (relative_position_bias(module->x->weight, left, left, buckets) +
                          relative_position_bias(module->y->weight, lower, lower, buckets))) *
                        0.5;
  EXPECT_TRUE(bit_equal(module->forward(4, bbox), expected));
  EXPECT_FALSE(module->forward(4, bbox).requires_grad());
  EXPECT_EQ(module->forward(4).sizes(), at::IntArrayRef({1, 2, 4, 4}));
  EXPECT_THROW(module->forward(5, bbox), c10::ValueError);
  EXPECT_ERROR(module->forward(4, bbox.to(torch::kFloat)), c10::TypeError,
               "[DocumentPositionBias] bbox must be integers");
  std::ostringstream text;
  text << *module;
  EXPECT_EQ(text.str().rfind("posenc::DocumentPositionBias(num_heads=2, ", 0), 0U);
}

// A decoder's step has the last row of the whole.
TEST(RelativePositionBiasModule, OfAStepIsARowOfTheWhole) {
  RelativePositionBias module(Buckets{32, 128, false}, 2);
  const auto whole = module->forward(12, 12);
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_TRUE(bit_equal(module->forward(1, 12, i), whole.slice(2, i, i + 1).contiguous()));
}

TEST(RelativePositionBiasModule, Errors) {
  EXPECT_ERROR(RelativePositionBias(Buckets{}, 0), c10::ValueError, "num_heads must be positive");
  EXPECT_ERROR(RelativePositionBias(Buckets{31}, 2), c10::ValueError, "must be even");
  EXPECT_ERROR(RelativePositionBias(Shift{3}, 2), c10::ValueError, "number of rows");
}

TEST(RelativeAttentionModule, AddsTheTermOfItsWeight) {
  const auto q = torch::randn({2, 3, 5, 4}), k = torch::randn({2, 3, 7, 4});
  const auto mask = torch::randn({2, 1, 5, 7});
  for (const Contract contract : {Contract::Query, Contract::Key}) {
    RelativeAttention module(
        RelativeAttentionOptions(Clamp{3, 2}, 4).contract(contract).num_heads(3));
    EXPECT_EQ(module->weight.sizes(), at::IntArrayRef({3, 6, 4}));
    const bool of_keys = contract == Contract::Key;
    const auto term =
        relative_term(of_keys ? k : q, module->weight, of_keys ? 5 : 7, Clamp{3, 2}, contract, 2);
    EXPECT_TRUE(bit_equal(module->forward(q, k, mask, 2),
                          torch::matmul(q, k.transpose(-1, -2)) * 0.5 + term + mask));
  }
}

TEST(RelativeAttentionModule, HasRowsForAllDistances) {
  RelativeAttention module(RelativeAttentionOptions(Shift{4}, 6).rows(9));
  const auto q = torch::randn({1, 2, 5, 6});
  EXPECT_EQ(module->forward(q, q).sizes(), at::IntArrayRef({1, 2, 5, 5}));
  std::ostringstream text;
  text << *module;
  EXPECT_EQ(text.str(), "posenc::RelativeAttention(index=Shift(origin=4), head_dim=6, rows=9)");
  EXPECT_ERROR(module->forward(torch::zeros({1, 2, 6, 6}), torch::zeros({1, 2, 6, 6})),
               c10::ValueError, "must reach");
}

TEST(RelativeAttentionModule, Errors) {
  EXPECT_ERROR(RelativeAttention(RelativeAttentionOptions(Clamp{1, 1}, 0)), c10::ValueError,
               "head_dim must be positive");
  EXPECT_ERROR(RelativeAttention(RelativeAttentionOptions(Shift{4}, 6)), c10::ValueError,
               "rows must be positive");
  RelativeAttention module(RelativeAttentionOptions(Clamp{1, 1}, 4));
  EXPECT_ERROR(module->forward(torch::zeros({2, 5, 4}), torch::zeros({2, 5, 4})), c10::ValueError,
               "q must be (B, H, Q, D)");
}

}  // namespace
}  // namespace posenc
