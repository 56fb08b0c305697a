#pragma once

#include <ATen/core/Tensor.h>

#include "io/base/file_view.h"

namespace posenc::io {

/// Copies the view into `target`, of the same sizes, on any device and of any dtype: straight into
/// its memory where that is possible, else by windows of a few MB.
void copy_view(const FileView& view, const at::Tensor& target);

}  // namespace posenc::io
