#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <optional>
#include <string>

#include "posenc/core/base_arg.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The activation of a feed-forward network.
enum class Activation {
  ReLU,       ///< max(x, 0)
  GELU,       ///< x times the normal distribution function of x
  Swish,      ///< x * sigmoid(x), also called SiLU
  GELUTanh,   ///< GELU with the approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  QuickGELU,  ///< x * sigmoid(1.702 x)
};

/// Returns the activation named `relu`, `gelu`, `swish` or `silu`, `gelu_tanh` (transformers'
/// `gelu_new`, `gelu_fast`, `gelu_accurate`, `gelu_pytorch_tanh`, `gelu_python_tanh`), or
/// `quick_gelu`.
///
/// Errors: c10::ValueError for any other name.
Activation activation_of(const std::string& name);
/// Returns `relu`, `gelu`, `swish`, `gelu_tanh` or `quick_gelu`.
std::string to_string(Activation activation);

/// Options of a layer of the encoder or the decoder.
struct TransformerLayerOptions {
  /// The default options for width `d_model` and `num_heads` heads.
  TransformerLayerOptions(int64_t d_model, int64_t num_heads)
      : d_model_(d_model), num_heads_(num_heads) {}

  /// Width D of the layer.
  TORCH_ARG(int64_t, d_model);
  /// Number of heads; must divide d_model.
  TORCH_ARG(int64_t, num_heads);
  /// Width of the feed-forward network; PyTorch's dim_feedforward.
  TORCH_ARG(int64_t, d_ff) = 2048;
  /// Probability of every dropout in the layer, in [0, 1).
  TORCH_ARG(double, dropout) = 0.1;
  /// Activation of the feed-forward network.
  TORCH_ARG(Activation, activation) = Activation::ReLU;
  /// Normalises the input of each block (pre-norm); false: its output, as in the paper.
  TORCH_ARG(bool, norm_first) = false;
  /// Added to the variance in the norms.
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  /// Whether linear layers and norms have a bias.
  TORCH_ARG(bool, bias) = true;
  /// Whether sequences are (B, L, D); false: (L, B, D).
  TORCH_ARG(bool, batch_first) = true;
  /// Multiplies the output of each block by a LayerScale that starts from this factor, before it is
  /// added to x, as DINOv2 does; none unless set.
  TORCH_ARG(std::optional<double>, layer_scale) = std::nullopt;
  /// Draws Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;
};

/// Base class of the options of a stack of layers.
template <typename Derived>
class TransformerStackOptions {
 public:
  /// `num_layers` layers with the options `layer`.
  TransformerStackOptions(const TransformerLayerOptions& layer, int64_t num_layers)
      : layer_(layer), num_layers_(num_layers) {}

  /// Options of each layer.
  POSENC_BASE_ARG(TransformerLayerOptions, layer);
  /// Number of layers.
  POSENC_BASE_ARG(int64_t, num_layers);
  /// Adds a final norm after all layers, which pre-norm stacks need.
  POSENC_BASE_ARG(bool, norm) = false;
};

}  // namespace posenc
