// Layers, stacks and models at random shapes, dtypes and memory layouts on a device whose memory
// the host cannot read: the CPU's results and gradients, and no forward or backward waits for it.

#include <gtest/gtest.h>

#include "modules/device_trials.h"
#include "posenc/models/encoder.h"
#include "posenc/models/functional/pooling.h"
#include "posenc/positions/nn/rms_norm.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/gated_feed_forward.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/transformer.h"

namespace posenc::device_layers_test {
namespace {

using testing::Draw;
using testing::forward_first;
using testing::Tensors;
using testing::Trial;
using testing::TrialKind;
using torch::Tensor;

TransformerLayerOptions layer(Draw& draw, int64_t heads, int64_t width) {
  return TransformerLayerOptions(heads * width, heads)
      .d_ff(draw.size(20))
      .norm_first(draw.dice.coin())
      .bias(draw.dice.coin())
      .batch_first(draw.dice.coin())
      .activation(draw.dice.any({Activation::ReLU, Activation::GELU, Activation::SiLU}));
}

// (B, L, D), or (L, B, D).
Tensor sequence(Draw& draw, bool batch_first, int64_t batch, int64_t length, int64_t width) {
  const Tensor x = draw.vectors({batch, length, width});
  return batch_first ? x : x.transpose(0, 1);
}

// Queries and keys of one length or of two, heads in groups, possibly rotated.
Trial attention(Draw& draw) {
  const int64_t groups = draw.size(3), per_group = draw.size(3), width = draw.even(5);
  const int64_t heads = groups * per_group, queries = draw.size(9), batch = draw.batch();
  const bool rotates = draw.dice.coin();  // one length then, as positions are counted
  const int64_t keys = rotates || draw.dice.coin() ? queries : draw.size(9);
  auto options = MultiheadAttentionOptions(heads * width, heads)
                     .num_kv_heads(groups)
                     .bias(draw.dice.coin())
                     .batch_first(draw.dice.coin());
  if (rotates) options.rotary(RotaryEmbeddingOptions(draw.rotary(width)));
  const bool first = options.batch_first(), masked = draw.dice.coin();
  return {std::make_shared<MultiheadAttentionImpl>(options),
          {sequence(draw, first, batch, queries, heads * width),
           sequence(draw, first, batch, keys, heads * width), draw.tokens_mask(batch, keys)},
          [=](torch::nn::Module& module, const Tensors& x) {
            const auto padding = masked ? AttentionMask::key_padding(x[2]) : AttentionMask();
            return dynamic_cast<MultiheadAttentionImpl&>(module).forward(
                x[0], x[1], x[1], padding & AttentionMask::causal());
          }};
}

// A sequence in several pieces, whose keys and values are cached.
Trial cached_attention(Draw& draw) {
  const int64_t groups = draw.size(3), width = draw.even(5), heads = groups * draw.size(3);
  const int64_t batch = 1 + draw.batch(), length = draw.size(9), first = draw.dice.below(length);
  auto options = MultiheadAttentionOptions(heads * width, heads).num_kv_heads(groups);
  if (draw.dice.coin()) options.rotary(RotaryEmbeddingOptions(draw.rotary(width)));
  return {
      std::make_shared<MultiheadAttentionImpl>(options),
      {draw.vectors({batch, length, heads * width}), draw.tokens_mask(batch, length)},
      [=](torch::nn::Module& module, const Tensors& x) {
        auto& self = dynamic_cast<MultiheadAttentionImpl&>(module);
        auto cache = self.make_cache(batch, length);
        Tensors parts;
        if (first > 0) parts.push_back(self.step(x[0].slice(1, 0, first), cache));
        parts.push_back(self.step(x[0].slice(1, first), cache, AttentionMask::key_padding(x[1])));
        cache.select(torch::arange(batch, x[1].options().dtype(torch::kLong)));
        return torch::cat(parts, 1);
      }};
}

Trial norms(Draw& draw) {
  const int64_t width = draw.size(20), length = draw.size(9);
  const Tensors x = {draw.vectors({draw.batch(), length, width})};
  switch (draw.dice.below(4)) {
    case 0: return {std::make_shared<LayerNormImpl>(width), x, forward_first<LayerNormImpl>};
    case 1: return {std::make_shared<RMSNormImpl>(width), x, forward_first<RMSNormImpl>};
    case 2:
      return {std::make_shared<RMSNormImpl>(RMSNormOptions::gemma(width)), x,
              forward_first<RMSNormImpl>};
    default: break;
  }
  const auto options =
      GatedFeedForwardOptions(width, draw.size(20))
          .gate(draw.dice.any({Activation::SiLU, Activation::GELU, Activation::ReLU}))
          .bias(draw.dice.coin());
  return {std::make_shared<GatedFeedForwardImpl>(options), x, forward_first<GatedFeedForwardImpl>};
}

Trial encoder_stack(Draw& draw) {
  const int64_t heads = draw.size(3), width = 3 + draw.size(6), length = draw.size(9);
  const int64_t batch = draw.batch();
  const auto of = layer(draw, heads, width);
  return {std::make_shared<TransformerEncoderImpl>(
              TransformerEncoderOptions(of, draw.size(2)).norm(draw.dice.coin())),
          {sequence(draw, of.batch_first(), batch, length, heads * width),
           draw.tokens_mask(batch, length)},
          [](torch::nn::Module& module, const Tensors& x) {
            return dynamic_cast<TransformerEncoderImpl&>(module).forward(
                x[0], AttentionMask::key_padding(x[1]));
          }};
}

Trial decoder_stack(Draw& draw) {
  const int64_t heads = draw.size(3), width = 3 + draw.size(6), length = draw.size(9);
  const int64_t batch = draw.batch(), memory = draw.size(9);
  const auto of = layer(draw, heads, width);
  return {std::make_shared<TransformerDecoderImpl>(
              TransformerDecoderOptions(of, draw.size(2)).norm(draw.dice.coin())),
          {sequence(draw, of.batch_first(), batch, length, heads * width),
           sequence(draw, of.batch_first(), batch, memory, heads * width),
           draw.tokens_mask(batch, memory)},
          [](torch::nn::Module& module, const Tensors& x) {
            return dynamic_cast<TransformerDecoderImpl&>(module).forward(
                x[0], x[1], AttentionMask::causal(), AttentionMask::key_padding(x[2]));
          }};
}

Trial transformer(Draw& draw) {
  const int64_t vocab = 2 + draw.size(20), heads = draw.size(3), batch = draw.batch();
  const auto options = TransformerOptions(vocab, vocab)
                           .d_model(heads * (2 + draw.even(5)))
                           .num_heads(heads)
                           .num_encoder_layers(1)
                           .num_decoder_layers(draw.size(2))
                           .d_ff(draw.size(20))
                           .max_len(12)
                           .norm_first(draw.dice.coin())
                           .tie(draw.dice.any({Tying::None, Tying::ThreeWay}));
  return {std::make_shared<TransformerImpl>(options),
          {draw.ids({batch, draw.size(12)}, vocab), draw.ids({batch, draw.size(12)}, vocab)},
          [](torch::nn::Module& module, const Tensors& x) {
            return dynamic_cast<TransformerImpl&>(module).forward(
                x[0], x[1], AttentionMask::padding(x[0], 0), AttentionMask::causal());
          }};
}

Trial encoder(Draw& draw) {
  const int64_t vocab = 3 + draw.size(30), heads = draw.size(3), length = draw.size(9);
  const int64_t width = heads * (2 + draw.even(5)), batch = draw.batch();
  auto stack = TransformerEncoderOptions(
      TransformerLayerOptions(width, heads).d_ff(draw.size(20)).activation(Activation::GELU), 1);
  if (draw.dice.coin()) stack.relative(relative::Buckets{.num_buckets = 8});
  const auto options =
      EncoderOptions(
          EncoderEmbeddingsOptions(vocab, width).position_rows(20).norm(embeddings::Norm::AfterSum),
          stack)
          .causal(draw.dice.coin())
          .pooling(draw.dice.any({encoder::Pooling::None, encoder::Pooling::TanhOfFirst,
                                  encoder::Pooling::EndToken, encoder::Pooling::LargestToken}));
  return {std::make_shared<EncoderImpl>(options),
          {draw.ids({batch, length}, vocab), draw.tokens_mask(batch, length)},
          [](torch::nn::Module& module, const Tensors& x) {
            const auto out = dynamic_cast<EncoderImpl&>(module).forward(
                x[0], EncoderInputs().attention_mask(x[1]));
            const Tensor mean = functional::mean_pool(out.last_hidden_state, x[1]);
            return out.pooled.defined() ? torch::cat({out.pooled, mean}, -1) : mean;
          }};
}

const TrialKind kTrials[] = {
    {"Attention", attention},
    {"CachedAttention", cached_attention},
    {"Norms", norms},
    {"EncoderStack", encoder_stack, false},
    {"DecoderStack", decoder_stack, false},
    {"Transformer", transformer, false},
    {"Encoder", encoder, false},
};

class Layers : public ::testing::TestWithParam<TrialKind> {};

INSTANTIATE_TEST_SUITE_P(AtRandomShapes, Layers, ::testing::ValuesIn(kTrials),
                         [](const auto& info) { return info.param.name; });

TEST_P(Layers, KeepTheDeviceLaws) { testing::expect_device_laws(GetParam()); }

}  // namespace
}  // namespace posenc::device_layers_test
