#pragma once

#include <map>
#include <string>

#include "posenc/io/state_dict.h"

namespace posenc {

/// A safetensors file: its tensors in the order in which the header names them, and its metadata.
struct SafetensorsFile {
  StateDict tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads `path` whole; the tensors own their memory, on the CPU. Throws WeightsError for anything
/// that is not a complete, consistent safetensors file.
SafetensorsFile load_safetensors(const std::string& path);

/// Writes contiguous little-endian copies of `tensors` to a temporary file beside `path`, syncs it
/// and renames it: `path` is either the old file or the whole new one. The header keeps the order
/// of `tensors`. Throws WeightsError that names the file, and the tensor where it is at fault.
void save_safetensors(const std::string& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace posenc
