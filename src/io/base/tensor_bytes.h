#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "io/base/file.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// The tensor's size in bytes when contiguous. Throws WeightsError if that overflows, as it can for
/// an expanded tensor of a small file.
uint64_t contiguous_bytes(const ManifestTensor& tensor);

/// Passes the tensor's value on as contiguous little-endian bytes, in order, piece by piece, using
/// some 16 MiB of memory whatever the tensor's size. `file` holds the tensor's storage. Throws
/// WeightsError.
void stream_tensor(const InputFile& file, const ManifestStorage& storage,
                   const ManifestTensor& tensor,
                   const std::function<void(const char* data, std::size_t count)>& take);

}  // namespace posenc::io
