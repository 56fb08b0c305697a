// Layers that work at a smaller width, as MobileBERT's.

#include "posenc/transformer/layers/bottleneck_encoder_layer.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "modules/drawn_module.h"
#include "posenc/inference/freeze.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::bottleneck_encoder_layer_test {
namespace {

using testing::bit_equal;
using testing::drawn;
using testing::near;
using testing::Threads;

TransformerLayerOptions layer_of(const BottleneckOptions& bottleneck) {
  return TransformerLayerOptions(8, 2).d_ff(7).dropout(0.0).layer_norm_eps(1e-3).bottleneck(
      bottleneck);
}

torch::Tensor network(const BottleneckFeedForward& own, const torch::Tensor& x) {
  const auto wide = torch::relu(own.ptr()->linear1->forward(x));
  return own.ptr()->norm->forward(x + own.ptr()->linear2->forward(wide));
}

TEST(BottleneckEncoderLayer, WorksAtTheWidthOfTheBottleneck) {
  auto layer = drawn(BottleneckEncoderLayer(
      layer_of(BottleneckOptions(6).num_feedforward_networks(2).last_norm_eps(0.1))));
  const auto x = torch::randn({2, 5, 8});
  const auto inner = layer->input_norm->forward(layer->input->forward(x));
  const auto shared = layer->shared_norm->forward(layer->shared->forward(x));
  const auto attended = layer->norm1->forward(inner + layer->self_attn->forward(shared, shared, x));
  EXPECT_EQ(layer->last_ffn->norm->options.eps(), 0.1);
  EXPECT_EQ(layer->ffn->at<BottleneckFeedForwardImpl>(0).norm->options.eps(), 1e-3);
  const BottleneckFeedForward first(layer->ffn->ptr<BottleneckFeedForwardImpl>(0));
  const auto y = network(layer->last_ffn, network(first, attended));
  EXPECT_TRUE(near(layer->forward(x), layer->output_norm->forward(x + layer->output->forward(y))));
}

TEST(BottleneckEncoderLayer, TakesQueriesAndValuesFromWhereItsOptionsSay) {
  const auto x = torch::randn({2, 5, 8});
  auto all =
      drawn(BottleneckEncoderLayer(layer_of(BottleneckOptions(6).use_bottleneck_attention(true))));
  EXPECT_TRUE(all->shared) << "MobileBERT has it, unused";
  const auto inner = all->input_norm->forward(all->input->forward(x));
  const auto attended = all->norm1->forward(inner + all->self_attn->forward(inner, inner, inner));
  const auto y = network(all->last_ffn, attended);
  EXPECT_TRUE(near(all->forward(x), all->output_norm->forward(x + all->output->forward(y))));

  auto none = drawn(BottleneckEncoderLayer(layer_of(BottleneckOptions(8).use_bottleneck(false))));
  EXPECT_FALSE(none->input || none->shared || none->output);
  const auto plain = none->norm1->forward(x + none->self_attn->forward(x, x, x));
  EXPECT_TRUE(near(none->forward(x), network(none->last_ffn, plain)));
}

// With all ways to take queries and values, kinds of norms and numbers of threads.
TEST(BottleneckEncoderLayer, FrozenLayersComputeTheSame) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({3, 9, 8});
  const auto tokens = torch::ones({3, 9}, torch::kBool).tril(6);
  const auto mask = AttentionMask::key_padding(tokens);
  for (int number = 0; number < 32; ++number) {
    SCOPED_TRACE(number);
    const bool uses = (number & 1) != 0, inside = (number & 2) != 0, shares = (number & 4) != 0;
    const bool is_free = uses && (inside || shares);
    const auto own = BottleneckOptions(is_free ? 10 : 8)
                         .use_bottleneck(uses)
                         .use_bottleneck_attention(inside)
                         .key_query_shared_bottleneck(shares)
                         .num_feedforward_networks(1 + (number & 1));
    const auto layer =
        layer_of(own).norm_kind((number & 8) != 0 ? NormKind::Affine : NormKind::Layer);
    auto encoder =
        drawn(TransformerEncoder(TransformerEncoderOptions(layer, 2).norm((number & 16) != 0)));
    const auto frozen = freeze(encoder);
    EXPECT_EQ(frozen.bytes().own, 0);
    torch::Tensor first;
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      const auto got = frozen.forward(x, mask);
      if (!first.defined()) first = got;
      EXPECT_TRUE(bit_equal(got, first)) << threads;
    }
    EXPECT_TRUE(near(first.index({tokens}), encoder->forward(x, mask).index({tokens})));
    EXPECT_FALSE(first.index({~tokens}).any().item<bool>());
    TransformerEncoderRecord expected, got;
    expected.output_hidden_states = got.output_hidden_states = true;
    encoder->forward_with(x, mask, expected);
    EXPECT_TRUE(bit_equal(frozen.forward_with(x, mask, got), first));
    ASSERT_EQ(got.hidden_states.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(
          near(got.hidden_states[i].index({tokens}), expected.hidden_states[i].index({tokens})))
          << i;
    }
  }
}

TEST(BottleneckEncoderLayer, ItsKeysMayHaveNoBias) {
  BottleneckEncoderLayer layer(layer_of(BottleneckOptions(6)).key_bias(false));
  (layer->forward(torch::randn({2, 3, 8})) * torch::randn({2, 3, 8})).sum().backward();
  const auto grad = layer->self_attn->in_proj_bias.grad();
  EXPECT_FALSE(grad.slice(0, 6, 12).any().item<bool>());
  EXPECT_TRUE(grad.slice(0, 12).all().item<bool>());
}

TEST(BottleneckEncoderLayer, NoticesChangesOnceItIsFrozen) {
  TransformerEncoder encoder(TransformerEncoderOptions(layer_of(BottleneckOptions(6)), 1));
  const auto frozen = freeze(encoder);
  const auto x = torch::randn({1, 2, 8});
  const torch::NoGradGuard no_grad;
  auto& layer = encoder->layers->at<BottleneckEncoderLayerImpl>(0);
  layer.last_ffn->options.activation(Activation::GELU);
  EXPECT_ERROR(frozen.forward(x), c10::Error, "other options of layers.0.last_ffn");
  layer.last_ffn->options.activation(Activation::ReLU);
  layer.shared->weight.mul_(2.0);
  EXPECT_ERROR(frozen.forward(x), c10::Error, "other values in layers.0.shared.weight");
  layer.output->weight.set_data(torch::ones({8, 5}));
  EXPECT_ERROR(freeze(encoder), c10::ValueError, "layers.0.output.weight must be [8, 6]. Got");
}

TEST(BottleneckEncoderLayer, RefusesOptionsThatExcludeEachOther) {
  const std::pair<TransformerLayerOptions, const char*> cases[] = {
      {TransformerLayerOptions(8, 2), "bottleneck must be set. Got no bottleneck"},
      {layer_of(BottleneckOptions(0)), "intra_bottleneck_size must be positive. Got 0"},
      {layer_of(BottleneckOptions(7)), "num_heads must divide intra_bottleneck_size 7. Got 2"},
      {layer_of(BottleneckOptions(6).use_bottleneck(false)),
       "intra_bottleneck_size must be d_model 8 without use_bottleneck. Got 6"},
      {layer_of(BottleneckOptions(6).key_query_shared_bottleneck(false)),
       "must be d_model 8 without use_bottleneck_attention and key_query_shared_bottleneck. Got 6"},
      {layer_of(BottleneckOptions(6).num_feedforward_networks(0)),
       "num_feedforward_networks must be positive. Got 0"},
      {TransformerLayerOptions(8, 0).bottleneck(BottleneckOptions(6)),
       "num_heads must be positive. Got 0"},
      {layer_of(BottleneckOptions(6)).d_ff(0), "d_ff must be positive. Got 0"},
      {layer_of(BottleneckOptions(6)).norm_first(true), "norm_first must be its default"},
      {layer_of(BottleneckOptions(6)).post_norms(true), "post_norms must be its default"},
      {layer_of(BottleneckOptions(6)).disentangled(DisentangledOptions(3)),
       "disentangled must be its default"},
      {layer_of(BottleneckOptions(6)).window(1), "window must be its default"}};
  for (const auto& [options, message] : cases) {
    EXPECT_ERROR(BottleneckEncoderLayer{options}, c10::ValueError, message);
  }
  EXPECT_ERROR(TransformerEncoderLayer(layer_of(BottleneckOptions(6))), c10::ValueError,
               "bottleneck must not be set, except in a BottleneckEncoderLayer. Got one");
}

}  // namespace
}  // namespace posenc::bottleneck_encoder_layer_test
