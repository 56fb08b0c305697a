// Options of layers and stacks, and terms that a stack adds to scores, that were set after the
// modules were made, also where they would be refused then: a frozen model computes what the
// modules compute, or freeze() refuses.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "inference/layer_kinds.h"
#include "modules/drawn_module.h"
#include "posenc/inference/freeze.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using LayerOptions = TransformerLayerOptions;

// Also where a layer refuses one: the stack gives its mask to every attention.
TEST(OptionsSetLater, AWindow) {
  const auto small = [] { return LayerOptions(16, 4).d_ff(8); };
  const torch::NoGradGuard no_grad;
  for (const LayerOptions& options :
       {small(), small().mixing(Mixing::Convolution), small().bottleneck(BottleneckOptions(8)),
        small().conformer(ConformerOptions(3)), small().disentangled(DisentangledOptions(6))}) {
    for (const int64_t window : {1, -1}) {
      TransformerEncoder encoder(TransformerEncoderOptions(options, 2));
      encoder->eval();
      auto& layer = dynamic_cast<EncoderLayerBase&>(*encoder->layers->ptr(0));
      const_cast<LayerOptions&>(layer.layer_options()).window(window);
      if (window < 0) {
        EXPECT_ERROR(freeze(encoder), c10::ValueError, "[freeze] layers.0: window must ");
        continue;
      }
      const auto x = torch::randn({2, 9, 16});
      EXPECT_TRUE(within(Op::Layers, freeze(encoder).forward(x), encoder->forward(x)));
    }
  }
}

bool is_refused(const TransformerEncoder& encoder) {
  try {
    freeze(encoder);
    return false;
  } catch (const c10::ValueError& error) {
    EXPECT_NE(std::string(error.what_without_backtrace()).find("[freeze] "), std::string::npos);
    return true;
  }
}

// Also of layers that refuse them at construction: a module adds them to the scores of all.
TEST(OptionsSetLater, TermsOfStacksAreReadOrRefused) {
  using Stack = TransformerEncoderImpl;
  const std::function<void(Stack&, int64_t)> changes[] = {
      [](Stack& own, int64_t heads) {
        own.relative_attention_bias = RelativePositionBias(relative::Clamp{2, 1}, heads);
      },
      [](Stack& own, int64_t) { own.options.alibi(relative::Alibi{}); },
      [](Stack& own, int64_t) { own.options.alibi(relative::Alibi{.counts_tokens = true}); },
      [](Stack& own, int64_t heads) {
        own.grid_position_bias = GridPositionBias(relative::Grid{2, 2}, heads);
      },
      [](Stack& own, int64_t) {
        const auto layer = LayerOptions(16, 2).d_ff(12).dropout(0.0);
        own.conv = ConvolutionBeside(
            LayerOptions(layer).disentangled(DisentangledOptions(5).conv_kernel_size(3)));
      }};
  const torch::NoGradGuard no_grad;
  const auto tokens = torch::tensor({{1, 1, 1, 1, 1}, {1, 1, 1, 1, 0}}).to(torch::kBool);
  const auto x = torch::randn({2, 5, 16});
  const auto mask = AttentionMask::key_padding(tokens);
  std::size_t read = 0;
  for (const LayerKind& kind : layer_kinds(16, 2)) {
    SCOPED_TRACE(kind.name);
    for (const auto& change : changes) {
      auto encoder = drawn(TransformerEncoder(kind.stack));
      change(*encoder, kind.stack.layer().num_heads());
      drawn(encoder);
      if (is_refused(encoder)) continue;
      ++read;
      EXPECT_TRUE(within(Op::Layers, freeze(encoder).forward(x, mask).index({tokens}),
                         encoder->forward(x, mask).index({tokens})));
    }
  }
  EXPECT_GT(read, 30U);
  TransformerEncoder encoder(
      TransformerEncoderOptions(LayerOptions(16, 2).relative(relative::Clamp{2, 1}), 1));
  encoder->relative_attention_bias = RelativePositionBias(relative::Clamp{2, 1}, 2);
  EXPECT_ERROR(freeze(encoder), c10::ValueError,
               "[freeze] layers.0.self_attn must be without a relative position bias, since the "
               "stack has one. Got one");
  encoder = TransformerEncoder(
      TransformerEncoderOptions(LayerOptions(16, 2).disentangled(DisentangledOptions(5)), 1));
  encoder->options.alibi(relative::Alibi{});
  EXPECT_ERROR(freeze(encoder), c10::ValueError,
               "[freeze] layers.0 must be of Mixing::Attention without a bottleneck, disentangled "
               "or Transformer-XL's attention, since the stack has alibi. Got disentangled "
               "attention");
}

TEST(OptionsSetLater, TheAxisOfHeadsIsRefused) {
  const auto rotary = [](const char* name) {
    return RotaryEmbeddingOptions(rotary_preset(name, 8));
  };
  TransformerEncoder encoder(
      TransformerEncoderOptions(LayerOptions(16, 2).rotary(rotary("llama")), 1));
  encoder->layers->at<TransformerEncoderLayerImpl>(0).self_attn->rotary->options.head_axis(
      rotary::HeadAxis::AfterLength);
  EXPECT_ERROR(freeze(encoder), c10::ValueError,
               "[freeze] layers.0.self_attn.rotary: head_axis must be BeforeLength, as in the rest "
               "of the model. Got AfterLength");
  const auto conformer =
      LayerOptions(16, 2).conformer(ConformerOptions(3)).rotary(rotary("wav2vec2_conformer"));
  encoder = TransformerEncoder(TransformerEncoderOptions(conformer, 1));
  encoder->layers->at<ConformerEncoderLayerImpl>(0).rotary->options.head_axis(
      rotary::HeadAxis::BeforeLength);
  EXPECT_ERROR(freeze(encoder), c10::ValueError,
               "[freeze] layers.0.rotary: head_axis must be AfterLength, as in the rest of the "
               "model. Got BeforeLength");
}

}  // namespace
}  // namespace posenc::testing
