#include "posenc/transformer/functional/multihead_attention.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "posenc/transformer/attention/multihead_attention.h"
#include "support/compare.h"
#include "support/devices.h"
#include "support/seed.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc::multihead_attention_test {
namespace {

using functional::MultiheadAttentionFuncOptions;
using functional::MultiheadAttentionWeights;
using testing::bit_equal;
using testing::OnEachDevice;
using testing::Op;

MultiheadAttentionWeights random_weights(int64_t width, torch::Device device = torch::kCPU) {
  const auto make = [&](std::vector<int64_t> shape) {
    return (torch::randn(shape) / 4).to(device).requires_grad_(true);
  };
  MultiheadAttentionWeights weights;
  weights.in_proj_weight = make({3 * width, width});
  weights.in_proj_bias = make({3 * width});
  weights.out_proj_weight = make({width, width});
  weights.out_proj_bias = make({width});
  return weights;
}

// The reference path: separate projections, with scores and softmax written out. A row that may not
// attend to anything is zero.
torch::Tensor plain(const torch::Tensor& query, const torch::Tensor& key,
                    const torch::Tensor& value, const MultiheadAttentionWeights& weights,
                    int64_t num_heads, const AttentionMask& mask) {
  const auto w = weights.in_proj_weight.chunk(3), b = weights.in_proj_bias.chunk(3);
  const auto heads = [&](const torch::Tensor& x, int part) {
    return torch::linear(x, w[part], b[part])
        .unflatten(-1, {num_heads, -1})
        .transpose(1, 2);  // (B, H, L, Dh)
  };
  const auto q = heads(query, 0), k = heads(key, 1), v = heads(value, 2);
  const AttentionShape shape = {q.size(0), num_heads, q.size(2), k.size(2)};
  // `& all` rotates a mask that would be is_causal into a bias
  const auto all = AttentionMask::allowed_pairs(torch::ones({1, 1}, torch::kBool).to(q.device()));
  const auto bias = AttentionMaskAccess::resolve(mask & all, shape, q).bias;
  const auto scores =
      q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3))) + bias;
  const auto never = scores == -std::numeric_limits<double>::infinity();
  const auto share = scores.masked_fill(never, -1e30).softmax(-1).masked_fill(never, 0.0);
  return torch::linear(share.matmul(v).transpose(1, 2).flatten(2), weights.out_proj_weight,
                       weights.out_proj_bias);
}

struct Case {
  const char* name;
  AttentionMask (*make)(torch::Device device);
};

const Case kMasks[] = {
    // B 2, H 3, L 4, S 4
    {"none", [](torch::Device) { return AttentionMask(); }},
    {"causal", [](torch::Device) { return AttentionMask::causal(); }},
    {"causal with keys before", [](torch::Device) { return AttentionMask::causal(2); }},
    {"query 0 sees nothing", [](torch::Device) { return AttentionMask::causal(-1); }},
    {"padding",
     [](torch::Device d) {
       return AttentionMask::padding(torch::tensor({{1, 2, 0, 0}, {0, 1, 1, 1}}).to(d), 0);
     }},
    {"a row of padding alone",
     [](torch::Device d) {
       return AttentionMask::padding(torch::tensor({{0, 0, 0, 0}, {0, 1, 1, 1}}).to(d), 0);
     }},
    {"causal padding, padding first",
     [](torch::Device d) {
       return AttentionMask::causal() &
              AttentionMask::padding(torch::tensor({{0, 0, 1, 1}, {1, 1, 1, 0}}).to(d), 0);
     }},
    {"bias",
     [](torch::Device d) { return AttentionMask::additive_pairs(torch::randn({4, 4}).to(d)); }},
    {"bias and padding",
     [](torch::Device d) {
       return AttentionMask::additive(torch::randn({3, 1, 4}).unsqueeze(0).to(d)) &
              AttentionMask::padding(torch::tensor({{0, 0, 0, 0}, {0, 1, 1, 1}}).to(d), 0);
     }},
};

class MultiheadAttentionFunction : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(MultiheadAttentionFunction);

// Forward and all gradients, including fully masked rows.
TEST_P(MultiheadAttentionFunction, IsItsPlainCompositionUnderEveryMask) {
  for (const Case& one : kMasks) {
    SCOPED_TRACE(one.name);
    torch::manual_seed(testing::seed(5));
    const auto weights = random_weights(12, device());
    const auto mask = one.make(device());
    auto x = torch::randn({2, 4, 12}).to(device()).requires_grad_(true);
    const std::vector<torch::Tensor> leaves = {x, weights.in_proj_weight, weights.in_proj_bias,
                                               weights.out_proj_weight, weights.out_proj_bias};
    const auto cotangent = torch::randn({2, 4, 12}).to(device());
    const auto run = [&](const torch::Tensor& out) {
      return torch::autograd::grad({out}, leaves, {cotangent});
    };
    const auto fast = functional::multihead_attention(x, x, x, weights,
                                                      MultiheadAttentionFuncOptions(3).mask(mask));
    const auto slow = plain(x, x, x, weights, 3, mask);
    EXPECT_TRUE(testing::within(Op::Layers, fast, slow));
    const auto fast_gradients = run(fast), slow_gradients = run(slow);
    for (size_t i = 0; i < leaves.size(); ++i) {
      EXPECT_TRUE(testing::within(Op::Layers, fast_gradients[i], slow_gradients[i])) << i;
    }
  }
}

TEST_P(MultiheadAttentionFunction, QueriesThatSeeNothingGiveZeros) {
  for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
    const auto keys = torch::randn({2, 3, 4, 5}, dtype).to(device()).requires_grad_(true);
    const auto out_proj = torch::eye(15, torch::TensorOptions(dtype).device(device()));
    MultiheadAttentionWeights weights;
    weights.out_proj_weight = out_proj;
    const auto nothing =
        AttentionMask::blocked_pairs(torch::ones({1, 1}, torch::kBool).to(device()));
    const auto out = functional::attend_heads({keys, keys, keys}, weights,
                                              MultiheadAttentionFuncOptions(3).mask(nothing));
    EXPECT_TRUE((out == 0).all().item<bool>());
    out.sum().backward();
    EXPECT_TRUE((keys.grad() == 0).all().item<bool>());
  }
}

TEST(MultiheadAttentionFunction, GivesALearnedBiasItsGradient) {
  const auto weights = random_weights(12);
  const auto x = torch::randn({2, 4, 12});
  auto bias = torch::randn({3, 1, 4}).unsqueeze(0).requires_grad_(true);
  const auto mask = AttentionMask::additive(bias) & AttentionMask::causal();
  const auto gradient = [&](const torch::Tensor& out) {
    return torch::autograd::grad({out.square().sum()}, {bias})[0];
  };
  EXPECT_TRUE(testing::within(Op::Layers,
                              gradient(functional::multihead_attention(
                                  x, x, x, weights, MultiheadAttentionFuncOptions(3).mask(mask))),
                              gradient(plain(x, x, x, weights, 3, mask))));
}

TEST(MultiheadAttentionFunction, IsTheCounterpartOfTheModule) {
  MultiheadAttention module(MultiheadAttentionOptions(12, 3).dropout(0.25));
  const auto x = torch::randn({2, 4, 12}), y = torch::randn({2, 5, 12});
  MultiheadAttentionWeights weights;
  weights.in_proj_weight = module->in_proj_weight;
  weights.in_proj_bias = module->in_proj_bias;
  weights.out_proj_weight = module->out_proj->weight;
  weights.out_proj_bias = module->out_proj->bias;
  for (const bool training : {false, true}) {
    module->train(training);
    const auto how = MultiheadAttentionFuncOptions(3).dropout(0.25).training(training).mask(
        AttentionMask::causal(1));
    torch::manual_seed(testing::seed(3));
    const auto expected = module->forward(x, y, y, AttentionMask::causal(1));
    torch::manual_seed(testing::seed(3));
    EXPECT_TRUE(bit_equal(functional::multihead_attention(x, y, y, weights, how), expected));
  }
}

// Python's order changes the memory layout, and with it the elements that dropout hits, but not the
// values.
TEST(MultiheadAttentionFunction, PythonsOrderIsAnotherMemoryOrder) {
  const auto weights = random_weights(12);
  const auto x = torch::randn({2, 4, 12});
  const auto run = [&](bool python) {
    return functional::multihead_attention(
        x, x, x, weights, MultiheadAttentionFuncOptions(3).python_dropout_order(python));
  };
  EXPECT_TRUE(testing::within(Op::Layers, run(true), run(false)));
  EXPECT_EQ(run(true).strides(), (std::vector<int64_t>{12, 24, 1}));
  EXPECT_TRUE(run(false).is_contiguous());
}

TEST(MultiheadAttentionErrors, NamesWhatIsWrong) {
  const auto weights = random_weights(12);
  const auto x = torch::randn({2, 4, 12});
  const auto run = [&](const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       int64_t heads = 3) {
    return functional::multihead_attention(q, k, v, weights, MultiheadAttentionFuncOptions(heads));
  };
  EXPECT_ERROR(run(x, x, x, 5), c10::ValueError, "num_heads must divide embed_dim 12. Got 5");
  EXPECT_ERROR(run(x, x, x, 0), c10::ValueError, "num_heads must be positive");
  EXPECT_ERROR(run(x[0], x, x), c10::ValueError, "query must be (B, L, 12). Got [4, 12]");
  EXPECT_ERROR(run(x, torch::randn({2, 4, 11}), x), c10::ValueError, "key must be (B, L, 12)");
  EXPECT_ERROR(run(x, x, torch::randn({12})), c10::ValueError, "value must be (B, L, 12)");
  EXPECT_ERROR(run(x, x, torch::randn({2, 5, 12})), c10::ValueError, "one length");
  EXPECT_ERROR(run(torch::randn({3, 4, 12}), x, x), c10::ValueError,
               "query and key must have one batch");
  EXPECT_ERROR(run(x, x, torch::randn({1, 4, 12})), c10::ValueError,
               "key and value must have one batch and one length");
  const auto heads = torch::randn({2, 3, 4, 4}), one = heads.narrow(0, 0, 1);
  for (const functional::Heads& wrong : {functional::Heads{one, heads, heads},
                                         {heads, one, one},
                                         {heads, heads, one},
                                         {heads, heads, heads.narrow(1, 0, 1)},
                                         {heads, heads, heads.narrow(2, 0, 3)},
                                         {heads, heads[0], heads[0]}}) {
    EXPECT_ERROR(functional::attend_heads(wrong, weights, MultiheadAttentionFuncOptions(3)),
                 c10::ValueError, "query, keys and values must be (B, H, L, Dh)");
  }
  const auto bad = MultiheadAttentionFuncOptions(3).mask(
      AttentionMask::allowed_pairs(torch::ones({3, 3}, torch::kBool)));
  EXPECT_ERROR(functional::multihead_attention(x, x, x, weights, bad), c10::ValueError,
               "[AttentionMask] a mask must broadcast");
  EXPECT_ERROR(functional::multihead_attention(x, x, x, weights,
                                               MultiheadAttentionFuncOptions(3).dropout(1.0)),
               c10::ValueError, "dropout must lie in [0, 1)");
}

// LibTorch's own causal attention gives NaN here.
TEST(MultiheadAttention, AScaleMayBeZeroOrNegativeWithACausalMask) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 8});
  const auto weights = random_weights(8);
  for (const double scale : {0.0, -0.5, 0.5}) {
    const auto with = [&](const AttentionMask& mask) {
      return functional::multihead_attention(
          x, x, x, weights, MultiheadAttentionFuncOptions(2).scale(scale).mask(mask));
    };
    const auto pairs = torch::ones({5, 5}, torch::kBool).tril();
    const auto causal = with(AttentionMask::causal());
    EXPECT_TRUE(causal.isfinite().all().item<bool>()) << scale;
    EXPECT_TRUE(testing::within(Op::Layers, causal, with(AttentionMask::allowed_pairs(pairs))))
        << scale;
    const auto [same, shares] = functional::multihead_attention_with_weights(
        x, x, x, weights,
        MultiheadAttentionFuncOptions(2).scale(scale).mask(AttentionMask::causal()), true);
    EXPECT_TRUE(testing::within(Op::Layers, causal, same)) << scale;
  }
}

}  // namespace
}  // namespace posenc::multihead_attention_test
