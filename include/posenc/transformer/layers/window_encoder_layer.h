#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <iosfwd>
#include <tuple>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/window_attention.h"
#include "posenc/transformer/attention/window_options.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// Options of WindowEncoderLayer.
struct WindowEncoderLayerOptions {
  /// A layer with these options, whose norm_first must be true, and windows.
  WindowEncoderLayerOptions(TransformerLayerOptions layer, WindowOptions windows)
      : layer_(std::move(layer)), windows_(windows) {}

  /// The widths, the feed-forward network, the norms and the dropouts.
  TORCH_ARG(TransformerLayerOptions, layer);
  /// The windows.
  TORCH_ARG(WindowOptions, windows);

  POSENC_FIELDS(WindowEncoderLayerOptions, layer_, windows_);
};

/// An encoder layer on a map of tokens, whose attention is in windows of it: x = x +
/// attention(norm1(x)), x = x + linear2(activation(linear1(norm2(x)))); with res_post_norm x = x +
/// norm1(attention(x)), x = x + norm2(linear2(activation(linear1(x)))).
///
/// x: (B, h, w, D)  ->  (B, h, w, D).
///
/// ```cpp
/// posenc::WindowEncoderLayer layer(posenc::WindowEncoderLayerOptions(
///     posenc::TransformerLayerOptions(32, 4).d_ff(64).norm_first(true),
///     posenc::WindowOptions({4, 4}).shift(2)));
/// torch::Tensor map = layer->forward(torch::randn({2, 6, 10, 32}));  // (2, 6, 10, 32)
/// ```
///
/// Keys: `self_attn.*` (WindowAttention), `linear1.*`, `linear2.*`, `norm1.*`, `norm2.*`.
///
/// Errors: those of WindowAttention; c10::ValueError for a map that is not (B, h, w, D) and, with
/// needs_room, one that is smaller than its window; at construction, for options that exclude each
/// other.
///
/// Source: `SwinLayer`, `Swinv2Layer` and `SamVisionLayer` in transformers 5.23.
class WindowEncoderLayerImpl : public Cloneable<WindowEncoderLayerImpl> {
 public:
  /// A module with the given options.
  explicit WindowEncoderLayerImpl(WindowEncoderLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the layer's output.
  torch::Tensor forward(const torch::Tensor& x);
  /// forward() and the attention weights, (B * windows, H, N, N).
  std::tuple<torch::Tensor, torch::Tensor> forward_with_weights(const torch::Tensor& x);

  WindowEncoderLayerOptions options;    ///< the options given to the constructor
  WindowAttention self_attn{nullptr};   ///< the self-attention
  torch::nn::Linear linear1{nullptr},   ///< (D) to (d_ff)
      linear2{nullptr};                 ///< (d_ff) to (D)
  TransformerNorm norm1{nullptr},       ///< of the self-attention
      norm2{nullptr};                   ///< of the feed-forward network
  torch::nn::Dropout dropout{nullptr},  ///< after the activation
      dropout1{nullptr},                ///< after the self-attention
      dropout2{nullptr};                ///< after the feed-forward network

 private:
  torch::Tensor run(const torch::Tensor& x, torch::Tensor* weights);
};

TORCH_MODULE(WindowEncoderLayer);

}  // namespace posenc
