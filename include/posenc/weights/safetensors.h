#pragma once

#include <map>
#include <string>

#include "posenc/export.h"
#include "posenc/weights/state_dict.h"

namespace posenc POSENC_EXPORT {

/// The contents of a safetensors file.
struct SafetensorsFile {
  StateDict tensors;                            ///< in the order of the header
  std::map<std::string, std::string> metadata;  ///< of the header
};

/// Reads a whole safetensors file. The tensors own their memory, on the CPU.
///
/// Errors: WeightsError for anything that is not a complete and consistent safetensors file.
SafetensorsFile load_safetensors(const std::string& path);

/// Writes contiguous little-endian copies of `tensors` in their order. They are written to a
/// temporary file in the same folder, which is synced and renamed, so that `path` is always either
/// the old file or the complete new one.
///
/// Errors: WeightsError, naming the file and, if one is the cause, the tensor.
void save_safetensors(const std::string& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata = {});

}  // namespace posenc
