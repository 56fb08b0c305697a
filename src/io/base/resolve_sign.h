#pragma once

#include <cstddef>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// Applies the tensor's conj and neg bits to `bytes`, which hold some of its elements. Throws
/// WeightsError if the dtype has no negative numbers.
void resolve_sign(const ManifestTensor& tensor, void* bytes, std::size_t count);

}  // namespace posenc::io
