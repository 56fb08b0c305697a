#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A function of each element: the activation of a feed-forward network, of a gate, of a head, or
/// of a stage of sentence-transformers. Frozen layers have kernels for ReLU, ReLUSquared, GELU,
/// GELUTanh, QuickGELU and SiLU, which have the same bits on all processors with fused
/// multiply-add; the others are LibTorch's there too, which may round differently on another
/// processor.
enum class Activation {
  Identity,      ///< x
  ELU,           ///< x, below zero exp(x) - 1
  GELU,          ///< x times the normal distribution function of x
  GELUTanh,      ///< GELU with 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  Hardswish,     ///< x * relu6(x + 3) / 6
  LeakyReLU,     ///< x, below zero 0.01 x
  LogSigmoid,    ///< log(sigmoid(x))
  Mish,          ///< x * tanh(softplus(x))
  QuickGELU,     ///< x * sigmoid(1.702 x)
  ReLU,          ///< max(x, 0)
  ReLUSquared,   ///< max(x, 0)^2: Nemotron
  ReLU6,         ///< min(max(x, 0), 6)
  SELU,          ///< torch.nn.SELU
  SiLU,          ///< x * sigmoid(x)
  Swish = SiLU,  ///< another name of it
  Sigmoid,       ///< 1 / (1 + exp(-x))
  Softplus,      ///< log(1 + exp(x))
  Softsign,      ///< x / (1 + |x|)
  Tanh,          ///< tanh(x)
};

/// The activation of a name in transformers' ACT2FN, such as `gelu_new`, `silu` or `tanh`, if the
/// enumeration has it, or of one that to_string() returns.
///
/// Errors: c10::ValueError for an unknown name, with the nearest ones.
Activation activation_of(const std::string& name);

/// The activation that a class of torch.nn computes when it is made without arguments, such as
/// `Tanh`; nothing is known of other names.
///
/// Errors: c10::ValueError for a name that is no such class, with the nearest ones.
Activation activation_of_class(std::string_view name);

/// Returns a name that activation_of() takes: `relu`, `gelu_tanh`, `swish` for SiLU, `linear` for
/// Identity and so on.
std::string to_string(Activation activation);

namespace functional {

/// Applies an activation to each element.
///
/// x: (...)  ->  (...), in the dtype of x.
///
/// Errors: c10::TypeError for an x that is not floating-point.
///
/// Source: torch.nn.functional; `QuickGELUActivation` and `ReLUSquaredActivation` of transformers.
at::Tensor activate(const at::Tensor& x, Activation activation);

}  // namespace functional
}  // namespace posenc
