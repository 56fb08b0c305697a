#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "io/base/file.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// Bytes of the tensor when it is contiguous. Throws WeightsError where they overflow, which
/// expanded tensors of a small file can.
uint64_t contiguous_bytes(const ManifestTensor& tensor);

/// The tensor's value as contiguous little-endian bytes in order, piece by piece, in some 16 MiB of
/// memory whatever the tensor's size. `file` is that of the tensor's storage. Throws WeightsError.
void stream_tensor(const InputFile& file, const ManifestStorage& storage,
                   const ManifestTensor& tensor,
                   const std::function<void(const char* data, std::size_t count)>& take);

}  // namespace posenc::io
