#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::torch_internals {

/// Whether the tensor is a lazy clone, or has one: they share their memory until one of them is
/// written to.
bool is_lazy_clone(const at::Tensor& tensor);

/// A view of `tensor` whose values are conjugated and negated when they are read or written.
at::Tensor with_sign_bits(const at::Tensor& tensor, bool conj, bool negative);

}  // namespace posenc::torch_internals
