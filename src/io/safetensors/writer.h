#pragma once

#include <map>
#include <string>

#include "posenc/io/state_dict.h"

namespace posenc::io {

/// Writes contiguous little-endian copies of `tensors`, all or nothing. Throws WeightsError.
void write_safetensors(const std::string& path, const StateDict& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace posenc::io
