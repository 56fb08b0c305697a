#pragma once

#include <cstddef>

#include "weights/common/file_view.h"

namespace posenc::io {

/// Throws WeightsError if the dtype has no negative numbers.
void check_negative(ManifestDtype dtype);

/// Applies the view's conj and neg bits to `bytes`, which hold some of its elements. Throws
/// WeightsError as check_negative() does.
void resolve_sign(const FileView& view, void* bytes, std::size_t count);

}  // namespace posenc::io
