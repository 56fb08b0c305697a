#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace posenc::torch_internals {

/// The number of writes that autograd has counted, in place and through views; 0 for an inference
/// tensor, which has no count. Together with the address of the data it shows whether a tensor
/// still holds what was derived from it.
inline int64_t version_of(c10::TensorImpl& tensor) {
  return tensor.is_inference() ? 0 : tensor.version_counter().current_version();
}

/// The same, of a defined tensor.
inline int64_t version_of(const at::Tensor& tensor) {
  return version_of(*tensor.unsafeGetTensorImpl());
}

/// `tensor` with other sizes, as a tensor of its own and not a view: autograd checks more for views
/// in each call, and a view made in no-grad mode cannot be modified in place outside it. The caller
/// must give up `tensor`.
at::Tensor reshaped_owner(const at::Tensor& tensor, at::IntArrayRef sizes);

}  // namespace posenc::torch_internals
