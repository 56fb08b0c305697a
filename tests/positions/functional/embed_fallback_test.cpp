// Cases in which the fused kernel silently leaves the work to the composition, with its result.

#include <ATen/autocast_mode.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/utils.h>

#include "posenc/positions/functional/embed.h"
#include "positions/functional/embed/composed.h"
#include "positions/functional/embed/fusable.h"
#include "support/compare.h"

namespace posenc::functional {
namespace {

using posenc::testing::bit_equal;

class EmbedFallback : public ::testing::Test {
 protected:
  static bool is_fused(const torch::Tensor& ids, const torch::Tensor& weight,
                       const torch::Tensor& table) {
    EmbedPlan plan;
    return is_fusable(ids, weight, table, {}, plan);
  }
  bool is_fused() const { return is_fused(ids, weight, table); }

  torch::Tensor ids = torch::randint(0, 9, {2, 3}, torch::kLong);
  torch::Tensor weight = torch::randn({9, 4}), table = torch::randn({5, 4});
  const torch::Tensor expected = embed(ids, weight, table);
};

TEST_F(EmbedFallback, UnsupportedTensors) {
  EXPECT_TRUE(is_fused());
  const auto columns = torch::randn({4, 9}).t();
  EXPECT_FALSE(is_fused(ids, columns, table));
  EXPECT_TRUE(bit_equal(embed(ids, columns, table), embed(ids, columns.contiguous(), table)));
  EXPECT_FALSE(is_fused(ids.slice(1, 0, 0), weight, table));
  EXPECT_EQ(embed(ids.slice(1, 0, 0), weight, table).sizes(), (std::vector<int64_t>{2, 0, 4}));
  EXPECT_FALSE(is_fused(ids, weight, table.to(torch::kDouble)));
  EXPECT_EQ(embed(ids, weight, table.to(torch::kDouble)).scalar_type(), torch::kDouble);
  const auto trained = table.clone().requires_grad_();
  EXPECT_FALSE(is_fused(ids, weight, trained));
  EXPECT_TRUE(embed(ids, weight, trained).requires_grad());
  EXPECT_FALSE(is_fused(ids, weight._neg_view(), table));
  EXPECT_TRUE(bit_equal(embed(ids, weight._neg_view(), table), embed(ids, -weight, table)));
}

// A trace must consist of operations that other programs know.
TEST_F(EmbedFallback, Tracing) {
  const auto traced = torch::jit::tracer::trace(
      {ids},
      [&](torch::jit::Stack inputs) -> torch::jit::Stack {
        EXPECT_FALSE(is_fused());
        return {embed(inputs[0].toTensor(), weight, table)};
      },
      [](const torch::autograd::Variable&) { return ""; });
  EXPECT_NE(traced.first->graph->toString().find("aten::embedding"), std::string::npos);
  EXPECT_TRUE(bit_equal(traced.second[0].toTensor(), expected));
}

TEST_F(EmbedFallback, Autocast) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const bool fused = is_fused();
  const auto out = embed(ids, weight, table);
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_FALSE(fused);
  EXPECT_TRUE(bit_equal(out, expected));
}

// torch.func.vmap over the rows of ids.
TEST_F(EmbedFallback, Transforms) {
  namespace functorch = at::functorch;
  const auto level = functorch::initAndPushDynamicLayer(
      functorch::TransformType::Vmap, c10::SymInt(2), functorch::RandomnessType::Error);
  const auto row = functorch::addBatchDim(ids, 0, level);
  const bool fused = is_fused(row, weight, table);
  const auto out = embed(row, weight, table);
  const auto* batched = functorch::maybeGetBatchedImpl(out);
  const auto value = batched != nullptr ? batched->value() : torch::Tensor();
  functorch::popDynamicLayerAndDeleteMetadata();
  EXPECT_FALSE(fused);
  ASSERT_TRUE(value.defined());
  EXPECT_TRUE(bit_equal(value, expected));
}

TEST_F(EmbedFallback, ForwardMode) {
  const auto tangent = torch::ones_like(weight);
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const auto dual = at::_make_dual(weight, tangent, static_cast<int64_t>(level));
  EXPECT_FALSE(is_fused(ids, dual, table));
  const auto out = embed(ids, dual, table);
  const auto moved = out._fw_grad(level);
  ASSERT_TRUE(moved.defined());
  EXPECT_TRUE(bit_equal(moved, embed(ids, tangent, torch::zeros_like(table))));
  const auto value = std::get<0>(at::_unpack_dual(out, static_cast<int64_t>(level)));
  EXPECT_TRUE(bit_equal(value, expected));
  torch::autograd::ForwardADLevel::release_idx(level);
}

// The view's own tangent was never set; it exists only once it is requested.
TEST_F(EmbedFallback, ForwardModeOfAViewWhoseBaseGotAGradient) {
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const auto dual = at::_make_dual(weight, torch::ones_like(weight), static_cast<int64_t>(level));
  const auto base = torch::zeros_like(weight), view = base.slice(0), rows = base.detach();
  EXPECT_TRUE(is_fused(ids, view, table));
  base.copy_(dual);
  EXPECT_FALSE(is_fused(ids, view, table));
  EXPECT_TRUE(embed(ids, view, table)._fw_grad(level).defined());
  EXPECT_TRUE(is_fused(ids, rows, table));
  torch::autograd::ForwardADLevel::release_idx(level);
  EXPECT_TRUE(is_fused(ids, view, table));
}

}  // namespace
}  // namespace posenc::functional
