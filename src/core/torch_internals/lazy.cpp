#include "core/torch_internals/lazy.h"

#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <c10/core/impl/COW.h>

namespace posenc::torch_internals {

bool is_lazy_clone(const at::Tensor& tensor) {
  return tensor.has_storage() && c10::impl::cow::is_cow_data_ptr(tensor.storage().data_ptr());
}

at::Tensor with_sign_bits(const at::Tensor& tensor, bool conj, bool negative) {
  const at::Tensor view = conj ? at::_conj(tensor) : tensor;
  return negative ? at::_neg_view(view) : view;
}

}  // namespace posenc::torch_internals
