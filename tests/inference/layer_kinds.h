#pragma once

#include <string>
#include <vector>

#include "posenc/positions/sinusoid/preset.h"
#include "posenc/transformer/layers/transformer_encoder.h"

namespace posenc::testing {

/// Options of a stack with layers of one kind, and what it is called.
struct LayerKind {
  std::string name;
  TransformerEncoderOptions stack;
};

/// A stack of each kind that treats padding in a way of its own, of two layers; `width` is a
/// multiple of 4 `heads`.
inline std::vector<LayerKind> layer_kinds(int64_t width, int64_t heads) {
  const TransformerLayerOptions layer =
      TransformerLayerOptions(width, heads).d_ff(12).dropout(0.0).activation(Activation::GELU);
  const auto own = [&] { return layer; };
  const auto fourier = [&] {
    return TransformerLayerOptions(width, 1).d_ff(12).dropout(0.0).mixing(Mixing::Fourier);
  };
  const DisentangledOptions terms(5);
  const TransformerXLOptions transformer_xl(preset("transformer_xl", width));
  const auto stack = [](const TransformerLayerOptions& of) {
    return TransformerEncoderOptions(of, 2);
  };
  return {
      {"post-norm", stack(own())},
      {"pre-norm", stack(own().norm_first(true)).norm(true)},
      {"pre-norm without a final norm", stack(own().norm_first(true))},
      {"relative bias", stack(own()).relative(relative::Buckets{})},
      {"ALiBi by columns", stack(own()).alibi(relative::Alibi{})},
      {"ALiBi by tokens", stack(own()).alibi(relative::Alibi{.counts_tokens = true})},
      {"ALiBi in bfloat16",
       stack(own()).alibi(relative::Alibi{.counts_tokens = true, .factor = 0.5, .bfloat16 = true})},
      {"DeBERTa", stack(own().disentangled(terms)).norm(true)},
      {"DeBERTa without terms",
       stack(own().disentangled(
           DisentangledOptions(terms).content_to_position(false).position_to_content(false)))},
      {"DeBERTa with a convolution",
       stack(own().disentangled(DisentangledOptions(terms).conv_kernel_size(3)))},
      {"XLNet", stack(own().qkv_bias(false).out_bias(false).transformer_xl(
                    TransformerXLOptions(transformer_xl).segments(true)))},
      {"XLNet with a window",
       stack(own().qkv_bias(false).out_bias(false).window(2).transformer_xl(transformer_xl))},
      {"MobileBERT", stack(own().bottleneck(BottleneckOptions(4 * heads)))},
      {"conformer", stack(own().conformer(ConformerOptions(3)))},
      {"conformer with relative positions",
       stack(own().conformer(ConformerOptions(3)).transformer_xl(transformer_xl))},
      {"FNet", stack(fourier())},
      {"pre-norm FNet", stack(fourier().norm_first(true)).norm(true)},
      {"ConvBERT", stack(own().mixing(Mixing::Convolution).conv_kernel_size(3))},
  };
}

/// Whether all tokens are mixed, so that masks are of keys only.
inline bool mixes_all_tokens(const TransformerEncoderOptions& stack) {
  return stack.layer().mixing() == Mixing::Fourier;
}

}  // namespace posenc::testing
