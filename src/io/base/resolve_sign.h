#pragma once

#include <cstddef>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// Applies the tensor's conj and neg bits to `bytes` of its elements. Throws WeightsError where the
/// dtype has no negative.
void resolve_sign(const ManifestTensor& tensor, void* bytes, std::size_t count);

}  // namespace posenc::io
