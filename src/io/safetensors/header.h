#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// Bytes of a header's JSON: the limit of the reference implementation, which every reader has.
constexpr uint64_t kLongestSafetensorsHeader = 100'000'000;

/// Parses the tensors and metadata of a safetensors header. Each tensor has its own storage, whose
/// offset counts from the end of the header. A tensor of unknown dtype is listed too, and also,
/// with the reason, among the opaque entries. Checks the JSON and the types of fields, and the
/// bytes of dtypes of less than a byte; strides, other sizes and ranges are left to the caller.
/// Throws WeightsError.
Manifest parse_safetensors_json(std::string_view json);

}  // namespace posenc::io
