#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "io/base/file_view.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// The tensor's size in bytes when contiguous. Throws WeightsError if that overflows, as it can for
/// an expanded tensor of a small file.
uint64_t contiguous_bytes(const ManifestTensor& tensor);

/// Passes the value of the tensor `name` on as contiguous little-endian bytes, in order, piece by
/// piece, using some 16 MiB of memory whatever its size. Throws WeightsError.
void stream_tensor(const FileView& view, const std::string& name,
                   const std::function<void(const char* data, std::size_t count)>& take);

}  // namespace posenc::io
