#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace posenc {

/// Throws c10::TypeError for segments that are not integers and c10::ValueError unless they are
/// (batch, length); undefined ones are none.
inline void check_segments(const char* module, const at::Tensor& segments, int64_t batch,
                           int64_t length) {
  if (!segments.defined()) return;
  TORCH_CHECK_TYPE(at::isIntegralType(segments.scalar_type(), /*includeBool=*/false), "[", module,
                   "] the segments of tokens must be integers. Got ", segments.scalar_type());
  TORCH_CHECK_VALUE(segments.dim() == 2 && segments.size(0) == batch && segments.size(1) == length,
                    "[", module, "] the segments of tokens must be [", batch, ", ", length,
                    "]. Got ", segments.sizes());
}

}  // namespace posenc
