#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <string>

namespace posenc {

/// What stands between the two linear maps of a layer; Swish is x * sigmoid(x), also named SiLU.
enum class Activation { ReLU, GELU, Swish };

/// The activation called `relu`, `gelu`, `swish` or `silu`; c10::ValueError for another name.
Activation activation_of(const std::string& name);
/// `relu`, `gelu` or `swish`.
std::string name_of(Activation activation);

/// Of a layer of the encoder or the decoder.
struct TransformerLayerOptions {
  TransformerLayerOptions(int64_t d_model, int64_t num_heads)
      : d_model_(d_model), num_heads_(num_heads) {}

  TORCH_ARG(int64_t, d_model);
  /// Divides d_model.
  TORCH_ARG(int64_t, num_heads);
  /// Width between linear1 and linear2; PyTorch's dim_feedforward.
  TORCH_ARG(int64_t, d_ff) = 2048;
  /// Of every dropout in the layer, in [0, 1).
  TORCH_ARG(double, dropout) = 0.1;
  TORCH_ARG(Activation, activation) = Activation::ReLU;
  /// Normalise what enters each block (pre-norm); false: what leaves it, as in the paper.
  TORCH_ARG(bool, norm_first) = false;
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  /// Of all linear maps and norms.
  TORCH_ARG(bool, bias) = true;
  /// Sequences are (B, L, D); false: (L, B, D).
  TORCH_ARG(bool, batch_first) = true;
  /// From one seed, Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;
};

}  // namespace posenc
