#include "core/torch_internals/version.h"

#include <ATen/ops/_unsafe_view.h>

namespace posenc::torch_internals {

at::Tensor reshaped_owner(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return at::_unsafe_view(tensor, sizes);
}

}  // namespace posenc::torch_internals
