// Attention weights as a result, beside those of LibTorch's own MultiheadAttention.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>

#include <cmath>
#include <limits>

#include "posenc/transformer/attention/multihead_attention.h"
#include "support/compare.h"

namespace posenc::attention_weights_test {
namespace {

using testing::Op;

constexpr int64_t kBatch = 3, kQueries = 5, kKeys = 7, kWidth = 12, kHeads = 4;

struct Pair {
  MultiheadAttention own{MultiheadAttentionOptions(kWidth, kHeads).dropout(0.3)};
  torch::nn::MultiheadAttention theirs{
      torch::nn::MultiheadAttentionOptions(kWidth, kHeads).dropout(0.3)};

  Pair() {
    const torch::NoGradGuard no_grad;
    torch::nn::init::normal_(own->in_proj_bias);
    theirs->in_proj_weight.copy_(own->in_proj_weight);
    theirs->in_proj_bias.copy_(own->in_proj_bias);
    theirs->out_proj->weight.copy_(own->out_proj->weight);
    theirs->out_proj->bias.copy_(own->out_proj->bias);
  }
};

torch::Tensor sequence_first(const torch::Tensor& x) { return x.transpose(0, 1); }

TEST(AttentionWeights, AreThoseOfLibTorch) {
  Pair pair;
  const auto query = torch::randn({kBatch, kQueries, kWidth});
  const auto key = torch::randn({kBatch, kKeys, kWidth}), value = torch::randn_like(key);
  auto padding = torch::zeros({kBatch, kKeys}, torch::kBool);
  padding[1].slice(0, 4).fill_(true);
  const auto bias = torch::randn({kQueries, kKeys});
  const auto mask =
      AttentionMask::key_padding_torch_nn(padding) & AttentionMask::additive_pairs(bias);
  for (const bool training : {false, true}) {
    pair.own->train(training);
    pair.theirs->train(training);
    const auto own = pair.own->forward(query, key, value, mask);
    torch::manual_seed(5);
    const auto [out, weights] = pair.own->forward_with_weights(query, key, value, mask);
    torch::manual_seed(5);
    const auto [expected, shares] =
        pair.theirs->forward(sequence_first(query), sequence_first(key), sequence_first(value),
                             padding, /*need_weights=*/true, bias);
    EXPECT_EQ(weights.sizes(), (std::vector<int64_t>{kBatch, kQueries, kKeys}));
    EXPECT_TRUE(within(Op::Layers, out, sequence_first(expected)));
    EXPECT_TRUE(within(Op::Layers, weights, shares));
    if (!training) {
      EXPECT_TRUE(within(Op::Layers, out, own));
    }
    torch::manual_seed(5);
    const auto heads = std::get<1>(pair.own->forward_with_weights(query, key, value, mask,
                                                                  /*average_attn_weights=*/false));
    EXPECT_EQ(heads.sizes(), (std::vector<int64_t>{kBatch, kHeads, kQueries, kKeys}));
    EXPECT_TRUE(within(Op::Layers, heads.mean(1), weights));
  }
}

// Through the weights as well as through the result.
TEST(AttentionWeights, HaveTheirGradients) {
  Pair pair;
  pair.own->eval();
  pair.theirs->eval();
  auto x = torch::randn({kBatch, kKeys, kWidth}).requires_grad_();
  auto y = sequence_first(x.detach()).contiguous().requires_grad_();
  const auto loss = [](const torch::Tensor& out, const torch::Tensor& weights) {
    return out.square().sum() + weights.square().sum();
  };
  const auto [out, weights] = pair.own->forward_with_weights(x, x, x);
  loss(out, weights).backward();
  const auto [expected, shares] = pair.theirs->forward(y, y, y);
  loss(expected, shares).backward();
  EXPECT_TRUE(within(Op::Layers, x.grad(), sequence_first(y.grad())));
  EXPECT_TRUE(
      within(Op::Layers, pair.own->in_proj_weight.grad(), pair.theirs->in_proj_weight.grad()));
}

TEST(AttentionWeights, AreZerosWhereAllIsMasked) {
  MultiheadAttention attention(kWidth, kHeads);
  auto x = torch::randn({2, 3, kWidth}).requires_grad_();
  const auto tokens = torch::tensor({{1, 1, 0}, {0, 0, 0}});
  const auto [out, weights] =
      attention->forward_with_weights(x, x, x, AttentionMask::key_padding(tokens));
  EXPECT_TRUE(testing::bit_equal(weights[1], torch::zeros({3, 3})));
  (out.sum() + weights.sum()).backward();
  EXPECT_TRUE(torch::isfinite(x.grad()).all().item<bool>());
}

TEST(AttentionWeights, AreCausalShareKeysAndFollowTheLayout) {
  const auto options = MultiheadAttentionOptions(kWidth, kHeads).num_kv_heads(2).dropout(0.0);
  MultiheadAttention attention(options);
  const auto x = torch::randn({2, 6, kWidth});
  const auto [out, weights] = attention->forward_with_weights(x, x, x, AttentionMask::causal());
  EXPECT_TRUE(within(Op::Layers, out, attention->forward(x, x, x, AttentionMask::causal())));
  EXPECT_TRUE(testing::bit_equal(weights.triu(1), torch::zeros_like(weights)));
  EXPECT_TRUE(within(Op::Layers, weights.sum(-1), torch::ones({2, 6})));
  attention->options.batch_first(false);
  const auto [other, same] = attention->forward_with_weights(
      x.transpose(0, 1), x.transpose(0, 1), x.transpose(0, 1), AttentionMask::causal());
  EXPECT_TRUE(within(Op::Layers, other.transpose(0, 1), out));
  EXPECT_TRUE(within(Op::Layers, same, weights));
}

// Slopes are read by distance, also with other masks, and have a gradient.
TEST(AttentionWeights, FallByTheirSlopes) {
  MultiheadAttention attention(kWidth, kHeads);
  const auto x = torch::randn({2, kQueries, kWidth}), y = torch::randn({2, kKeys, kWidth});
  const auto slopes = torch::rand({kHeads}).requires_grad_();
  const auto tokens = torch::ones({2, kKeys}, torch::kLong);
  tokens[1].slice(0, 4).zero_();
  const AttentionMask masks[] = {AttentionMask::slopes(slopes),
                                 AttentionMask::slopes(slopes) & AttentionMask::causal(),
                                 AttentionMask::slopes(slopes) & AttentionMask::key_padding(tokens),
                                 AttentionMask::slopes(slopes).after(2)};
  for (const AttentionMask& mask : masks) {
    const auto [out, weights] = attention->forward_with_weights(x, y, y, mask, false);
    const auto expected = attention->forward(x, y, y, mask);
    EXPECT_TRUE(within(Op::Layers, out, expected));
    const auto cotangent = torch::randn_like(out);
    EXPECT_TRUE(within(Op::Layers, torch::autograd::grad({out}, {slopes}, {cotangent})[0],
                       torch::autograd::grad({expected}, {slopes}, {cotangent})[0]));
  }
}

// A mask hides slopes that are not finite, as without the weights.
TEST(AttentionWeights, HideSlopesBesideScoresThatAreNotAllowed) {
  MultiheadAttention attention(MultiheadAttentionOptions(kWidth, kHeads).dropout(0.0));
  const auto x = torch::randn({2, kKeys, kWidth}), positions = torch::arange(kKeys);
  const auto away = (positions.unsqueeze(1) - positions).abs();
  const AttentionMask masks[] = {
      // inf times 0 is NaN; 2e38 times 2 is inf
      AttentionMask::slopes(torch::full({kHeads}, INFINITY)) &
          AttentionMask::allowed_pairs(away > 0),
      AttentionMask::slopes(torch::full({kHeads}, -2e38)) & AttentionMask::allowed_pairs(away < 2)};
  for (const AttentionMask& mask : masks) {
    const auto expected = attention->forward(x, x, x, mask);
    EXPECT_TRUE(expected.isfinite().all().item<bool>());
    EXPECT_TRUE(
        within(Op::Layers, std::get<0>(attention->forward_with_weights(x, x, x, mask)), expected));
  }
}

TEST(AttentionWeights, WithSlopesOfNoTokens) {
  const auto mask = AttentionMask::slopes(torch::rand({kHeads}));
  MultiheadAttention attention(kWidth, kHeads);
  const auto none = torch::randn({2, 0, kWidth});
  const auto [out, weights] = attention->forward_with_weights(none, none, none, mask);
  EXPECT_EQ(out.sizes(), none.sizes());
  EXPECT_EQ(weights.sizes(), at::IntArrayRef({2, 0, 0}));
}

}  // namespace
}  // namespace posenc::attention_weights_test
