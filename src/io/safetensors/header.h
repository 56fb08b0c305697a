#pragma once

#include <string_view>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// The tensors and metadata of a safetensors header's JSON, each tensor with a storage of its own
/// whose offset counts from the end of the header. One of a dtype that is not known is there, and
/// with its reason among the opaque entries. What JSON and the fields' types can tell is
/// checked here; strides, sizes and ranges are the caller's affair. Throws WeightsError.
Manifest parse_safetensors_json(std::string_view json);

}  // namespace posenc::io
