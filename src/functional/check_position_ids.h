#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/positional_encoding.h"

namespace posenc::functional {

/// Throws c10::ValueError unless the offset is 0 and options.position_ids() match an x (B, L, D),
/// (L, B, D) or (L, D), where `sizes` are the sizes of x without D.
void check_position_ids(at::IntArrayRef sizes, const PositionalEncodingFuncOptions& options);

}  // namespace posenc::functional
