// A relative position bias in attention, layers and stacks: what it adds to the scores, its
// gradient, and steps, which give the results of the whole sequence.

#include <gtest/gtest.h>
#include <torch/nn/modules/container/any.h>
#include <torch/utils.h>

#include "posenc/positions/nn/document_position_bias.h"
#include "posenc/positions/relative/alibi.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "support/dice.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::Op;
using testing::within;

// Draws integers in [low, high].
class Draws : public testing::Dice {
 public:
  explicit Draws(unsigned own) : Dice(own) { torch::manual_seed(testing::seed(own)); }
  int64_t operator()(int64_t low, int64_t high) { return low + below(high - low + 1); }
};

// A decoder's index has no keys after the query, but need not know it.
relative::Index any_index(Draws& draw, bool bidirectional) {
  if (draw(0, 3) == 0) return relative::Clamp{draw(0, 4), draw(0, 4)};
  const int64_t buckets = 2 * draw(2, 6);
  return relative::Buckets{buckets, buckets + draw(1, 9), bidirectional};
}

// T5's layers, with options that T5 leaves alone drawn.
TransformerLayerOptions any_layer(Draws& draw) {
  const int64_t heads = 2 * draw(1, 2);
  TransformerLayerOptions layer(draw(5, 13), heads);
  layer.d_ff(draw(1, 12)).dropout(0.0).norm_first(draw.coin()).bias(draw.coin());
  layer.head_dim(draw(1, 6)).num_kv_heads(draw.coin() ? heads : heads / 2);
  layer.norm_kind(draw.coin() ? NormKind::RMS : NormKind::Layer);
  layer.feed_forward(draw.coin() ? FeedForward::Gated : FeedForward::Plain);
  if (draw.coin()) layer.attention_scale(1.0);
  return layer;
}

template <typename Module>
Module with_own_weights(Module module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.copy_(torch::randn_like(parameter) * 0.5);
  module->eval();
  return module;
}

// The tokens of each sequence, with padding on either side, and at least one.
torch::Tensor any_tokens(Draws& draw, int64_t batch, int64_t length) {
  const torch::Tensor tokens = torch::zeros({batch, length}, torch::kBool);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t count = draw(1, length);
    tokens[b].narrow(0, draw.coin() ? 0 : length - count, count).fill_(true);
  }
  return tokens;
}

TEST(RelativeBias, OfAttentionIsAddedToTheScoresAndGetsTheirGradient) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Draws draw(seed);
    const int64_t heads = 2 * draw(1, 2), width = 4 * heads, batch = draw(1, 3);
    const int64_t queries = draw(1, 9), keys = draw(1, 9);
    const relative::Index index = any_index(draw, draw.coin());
    const auto own = MultiheadAttentionOptions(width, heads).num_kv_heads(heads / 2).scale(1.0);
    auto attention =
        with_own_weights(MultiheadAttention(MultiheadAttentionOptions(own).relative(index)));
    MultiheadAttention plain(own);
    plain->eval();
    {
      const torch::NoGradGuard no_grad;
      const auto from = attention->named_parameters();
      for (auto& parameter : plain->named_parameters())
        parameter.value().copy_(from[parameter.key()]);
    }
    const auto table =
        attention->relative_attention_bias->weight.detach().clone().requires_grad_(true);
    const auto x = torch::randn({batch, queries, width}), y = torch::randn({batch, keys, width});
    const auto mask = AttentionMask::key_padding(any_tokens(draw, batch, keys));
    const auto bias = AttentionMask::additive(relative_position_bias(table, queries, keys, index));
    const auto got = attention->forward(x, y, y, mask);
    const auto expected = plain->forward(x, y, y, mask & bias);
    EXPECT_TRUE(bit_equal(got, expected));
    const auto weights = torch::randn_like(got);
    (got * weights).sum().backward();
    (expected * weights).sum().backward();
    EXPECT_TRUE(bit_equal(attention->relative_attention_bias->weight.grad(), table.grad()));
    EXPECT_TRUE(bit_equal(attention->in_proj_weight.grad(), plain->in_proj_weight.grad()));
    const auto [same, shares] = attention->forward_with_weights(x, y, y, mask, false);
    const auto [other, of_plain] = plain->forward_with_weights(x, y, y, mask & bias, false);
    EXPECT_TRUE(bit_equal(shares, of_plain));
  }
}

TEST(RelativeBias, StepsOfAttentionAreTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Draws draw(seed);
    const int64_t heads = 2 * draw(1, 2), batch = draw(1, 3), length = draw(1, 14);
    auto attention = with_own_weights(MultiheadAttention(MultiheadAttentionOptions(heads * 3, heads)
                                                             .num_kv_heads(heads / 2)
                                                             .relative(any_index(draw, false))));
    const auto x = torch::randn({batch, length, heads * 3});
    const auto whole = attention->forward(x, x, x, AttentionMask::causal());
    auto cache = attention->make_cache(batch, length);
    for (int64_t at = 0; at < length;) {
      const int64_t count = draw(1, length - at);
      EXPECT_TRUE(within(Op::Layers, attention->step(x.narrow(1, at, count), cache),
                         whole.narrow(1, at, count)));
      at += count;
    }
  }
}

TEST(RelativeBias, OfAStackIsOneTableForAllLayers) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    Draws draw(seed);
    const TransformerLayerOptions layer = any_layer(draw);
    const relative::Index index = any_index(draw, true);
    const auto stack = TransformerEncoderOptions(layer, 2).norm(draw.coin());
    auto encoder =
        with_own_weights(TransformerEncoder(TransformerEncoderOptions(stack).relative(index)));
    TransformerEncoder plain(stack);
    {
      const torch::NoGradGuard no_grad;
      const auto from = encoder->named_parameters();
      for (auto& parameter : plain->named_parameters())
        parameter.value().copy_(from[parameter.key()]);
    }
    EXPECT_EQ(encoder->named_parameters().size(), plain->named_parameters().size() + 1);
    const int64_t batch = draw(1, 3), length = draw(1, 9);
    const auto table =
        encoder->relative_attention_bias->weight.detach().clone().requires_grad_(true);
    const auto x = torch::randn({batch, length, layer.d_model()});
    const auto mask = AttentionMask::key_padding(any_tokens(draw, batch, length));
    const auto bias = AttentionMask::additive(relative_position_bias(table, length, length, index));
    const auto got = encoder->forward(x, mask), expected = plain->forward(x, mask & bias);
    EXPECT_TRUE(bit_equal(got, expected));
    const auto weights = torch::randn_like(got);
    (got * weights).sum().backward();
    (expected * weights).sum().backward();
    EXPECT_TRUE(bit_equal(encoder->relative_attention_bias->weight.grad(), table.grad()));
  }
}

TEST(RelativeBias, StepsOfADecoderAreTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    Draws draw(seed);
    TransformerLayerOptions layer = any_layer(draw);
    const relative::Index index = any_index(draw, false);
    const bool is_shared = draw.coin();
    if (!is_shared) layer.relative(index);
    auto stack = TransformerDecoderOptions(layer, draw(1, 3)).norm(draw.coin());
    if (is_shared) stack.relative(index);
    auto decoder = with_own_weights(TransformerDecoder(stack));
    const int64_t batch = draw(1, 3), length = draw(1, 12), sources = draw(1, 6);
    const auto x = torch::randn({batch, length, layer.d_model()});
    const auto memory = torch::randn({batch, sources, layer.d_model()});
    const auto tokens = any_tokens(draw, batch, sources);
    const auto mask = AttentionMask::key_padding(tokens);
    const auto whole = decoder->forward(x, memory, AttentionMask::causal(), mask);
    auto cache = decoder->start(memory, length, mask);
    for (int64_t at = 0; at < length;) {
      const int64_t count = draw(1, length - at);
      EXPECT_TRUE(within(Op::Layers, decoder->step(x.narrow(1, at, count), cache),
                         whole.narrow(1, at, count)));
      at += count;
    }
    // Fewer rows than before: the masks of the others leave with them.
    auto one = decoder->start(memory, length, mask);
    const torch::Tensor last = torch::tensor({batch - 1});
    one.select(last);
    EXPECT_TRUE(within(Op::Layers, decoder->step(x.index_select(0, last), one),
                       whole.index_select(0, last)));
  }
}

TEST(AttentionMaskSlopes, AreTakenTimesTheDistanceAlsoInSteps) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    Draws draw(seed);
    const int64_t heads = draw(1, 5), batch = draw(1, 3), length = draw(1, 14);
    auto attention = with_own_weights(MultiheadAttention(heads * 3, heads));
    const auto x = torch::randn({batch, length, heads * 3});
    const auto slopes = alibi_slopes(heads);
    const auto mask = AttentionMask::slopes(slopes);
    const auto i = torch::arange(length);
    const auto away = (i.unsqueeze(0) - i.unsqueeze(1)).abs().to(torch::kFloat);
    const auto bias = (slopes.view({1, heads, 1, 1}) * -away.view({1, 1, length, length}));
    EXPECT_TRUE(bit_equal(attention->forward(x, x, x, mask),
                          attention->forward(x, x, x, AttentionMask::additive(bias))));
    const auto whole = attention->forward(x, x, x, mask & AttentionMask::causal());
    // BLOOM's, by the number of the key.
    const auto by_key = slopes.view({1, heads, 1, 1}) * i.to(torch::kFloat).view({1, 1, 1, length});
    EXPECT_TRUE(within(
        Op::Layers, whole,
        attention->forward(x, x, x, AttentionMask::additive(by_key) & AttentionMask::causal())));
    auto cache = attention->make_cache(batch, length);
    for (int64_t at = 0; at < length;) {
      const int64_t count = draw(1, length - at);
      EXPECT_TRUE(within(Op::Layers, attention->step(x.narrow(1, at, count), cache, mask),
                         whole.narrow(1, at, count)));
      at += count;
    }
  }
}

TEST(AttentionMaskSlopesErrors, NameTheNumberOfHeads) {
  MultiheadAttention attention(8, 2);
  const auto x = torch::randn({1, 3, 8});
  EXPECT_ERROR(attention->forward(x, x, x, AttentionMask::slopes(torch::ones({3}))),
               c10::ValueError, "slopes() takes a slope for each of the 2 heads. Got 3");
  EXPECT_ERROR(AttentionMask::slopes(torch::ones({1, 2})), c10::ValueError,
               "[AttentionMask] slopes() takes (H). Got [1, 2]");
  EXPECT_ERROR(AttentionMask::slopes(torch::ones({2}, torch::kLong)), c10::TypeError,
               "slopes() takes real numbers");
}

TEST(RelativeBias, OfALayerDiffersFromNone) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(3);
  const auto layer = TransformerLayerOptions(8, 2).dropout(0.0).relative(relative::Buckets{});
  auto decoder = with_own_weights(TransformerDecoder(TransformerDecoderOptions(layer, 1)));
  const auto x = torch::randn({1, 5, 8}), memory = torch::randn({1, 3, 8});
  const auto before = decoder->forward(x, memory, AttentionMask::causal());
  decoder->layers[0]
      ->as<TransformerDecoderLayer>()
      ->self_attn->relative_attention_bias->weight.zero_();
  EXPECT_GT(
      (decoder->forward(x, memory, AttentionMask::causal()) - before).abs().max().item<float>(),
      1e-3F);
}

TEST(RelativeBiasErrors, NameTheStackAndTheRule) {
  const auto layer = [] { return TransformerLayerOptions(8, 2); };
  const relative::Index index = relative::Buckets{};
  EXPECT_ERROR(
      TransformerEncoder(TransformerEncoderOptions(layer().relative(index), 1).relative(index)),
      c10::ValueError,
      "[TransformerEncoder] relative must be of the stack, or of its layers. Got both");
  EXPECT_ERROR(
      TransformerDecoder(TransformerDecoderOptions(layer().relative(index), 1).relative(index)),
      c10::ValueError, "[TransformerDecoder] relative must be of the stack");
  EXPECT_ERROR(TransformerEncoder(TransformerEncoderOptions(
                                      TransformerLayerOptions(8, 1).mixing(Mixing::Fourier), 1)
                                      .relative(index)),
               c10::ValueError, "relative must be with layers of Mixing::Attention");
  EXPECT_ERROR(TransformerEncoderLayer(
                   TransformerLayerOptions(8, 1).mixing(Mixing::Fourier).relative(index)),
               c10::ValueError, "relative must be its default with Mixing::Fourier");
  EXPECT_ERROR(MultiheadAttention(MultiheadAttentionOptions(8, 2).relative(relative::Shift{})),
               c10::ValueError, "[RelativePositionBias] the index must have a number of rows");
  EXPECT_ERROR(
      MultiheadAttention(MultiheadAttentionOptions(8, 2).relative(relative::Buckets{3, 128})),
      c10::ValueError, "the number of buckets must be even, and at least 4. Got 3");
}

TEST(GridPositionBias, FitsIntoAnAnyModule) {
  GridPositionBias bias(relative::Grid{2, 3}, 2);
  bias->weight.data().normal_();
  torch::nn::AnyModule any(bias);
  const std::optional<relative::Grid> own;  // LibTorch's defaults are only of later arguments
  EXPECT_TRUE(any.forward(own).equal(bias->forward()));
  const relative::Grid wide = {3, 3};
  EXPECT_TRUE(any.forward(std::optional<relative::Grid>(wide)).equal(bias->forward(wide)));
}

TEST(DocumentPositionBias, FitsIntoAnAnyModule) {
  DocumentPositionBias bias(
      DocumentPositionBiasOptions(2, relative::Buckets{8, 20}).boxes(relative::Buckets{8, 20}));
  torch::nn::AnyModule any(bias);
  EXPECT_TRUE(any.forward(int64_t{4}).equal(bias->forward(4)));
  const auto boxes = torch::randint(0, 9, {2, 4, 4});
  EXPECT_TRUE(any.forward(int64_t{4}, boxes).equal(bias->forward(4, boxes)));
}

}  // namespace
}  // namespace posenc
