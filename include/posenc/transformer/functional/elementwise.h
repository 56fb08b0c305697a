#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A function of each element by its class in torch.nn, as heads of encoders and stages of
/// sentence-transformers have them. Activation is the shorter list that layers compute fused.
enum class Elementwise {
  Identity,    ///< x
  ELU,         ///< x, below zero exp(x) - 1
  GELU,        ///< x times the normal distribution function of x
  GELUTanh,    ///< torch.nn.GELU(approximate="tanh")
  Hardswish,   ///< x * relu6(x + 3) / 6
  LeakyReLU,   ///< x, below zero 0.01 x
  LogSigmoid,  ///< log(sigmoid(x))
  Mish,        ///< x * tanh(softplus(x))
  QuickGELU,   ///< x * sigmoid(1.702 x)
  ReLU,        ///< max(x, 0)
  ReLU6,       ///< min(max(x, 0), 6)
  SELU,        ///< torch.nn.SELU
  SiLU,        ///< x * sigmoid(x)
  Sigmoid,     ///< 1 / (1 + exp(-x))
  Softplus,    ///< log(1 + exp(x))
  Softsign,    ///< x / (1 + |x|)
  Tanh,        ///< tanh(x)
};

/// The function that a class of torch.nn computes when it is made without arguments, such as
/// `Tanh`; nothing is known of other names.
///
/// Errors: c10::ValueError for a name that is none of Elementwise, with the nearest ones.
Elementwise elementwise_of(std::string_view name);

/// The function of a name in transformers' ACT2FN, such as `gelu_new` or `tanh`.
///
/// Errors: c10::ValueError for an unknown name, with the nearest ones.
Elementwise elementwise_of_transformers(std::string_view name);

/// Returns `Tanh` for Elementwise::Tanh, and so on.
std::string to_string(Elementwise function);

namespace functional {

/// Applies a function to each element.
///
/// x: (...)  ->  (...), in the dtype of x.
///
/// Errors: c10::TypeError for an x that is not floating-point.
///
/// Source: torch.nn.functional.
at::Tensor elementwise(const at::Tensor& x, Elementwise function);

}  // namespace functional
}  // namespace posenc
