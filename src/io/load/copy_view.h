#pragma once

#include <ATen/core/Tensor.h>

#include "io/base/file_view.h"

namespace posenc::io {

/// Copies the view into `target`, which has the same sizes and any device and dtype: directly into
/// its memory if possible, otherwise in windows of a few MB.
void copy_view(const FileView& view, const at::Tensor& target);

}  // namespace posenc::io
