#pragma once

#include <string_view>

#include "io/base/file.h"
#include "posenc/io/manifest.h"

// A safetensors file:
//   u64 length of the header, little-endian
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}
//   the tensors' bytes; offsets count from the end of the header
namespace posenc::io {

/// Whether the file starts like a safetensors file: a plausible length, then `{`.
bool looks_like_safetensors(const InputFile& file);

/// Reads the header and checks it against the format's rules and the file's size: every tensor has
/// exactly the bytes that its shape requires, and together they fill the rest of the file. Throws
/// WeightsError.
Manifest read_safetensors(const InputFile& file);

}  // namespace posenc::io
