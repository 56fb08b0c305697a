#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/weights/manifest.h"
#include "weights/common/file.h"

// A safetensors file:
//   u64 length of the header, little-endian
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {...}}
//   the tensors' bytes; offsets count from the end of the header
namespace posenc::io {

/// Bytes of a header's JSON: the limit of the reference implementation, which every reader has.
constexpr uint64_t kLongestSafetensorsHeader = 100'000'000;

/// Parses the tensors and metadata of a safetensors header. Each tensor has its own storage, whose
/// offset counts from the end of the header. A tensor of unknown dtype is listed too, and also,
/// with the reason, among the opaque entries. Checks the JSON and the types of fields, and the
/// bytes of dtypes of less than a byte; strides, other sizes and ranges are left to the caller.
/// Throws WeightsError.
Manifest parse_safetensors_json(std::string_view json);

/// Whether the file starts like a safetensors file: a plausible length, then `{`.
bool looks_like_safetensors(const InputFile& file);

/// Reads the header and checks it against the format's rules and the file's size: every tensor has
/// exactly the bytes that its shape requires, and together they fill the rest of the file. Throws
/// WeightsError.
Manifest read_safetensors(const InputFile& file);

}  // namespace posenc::io
