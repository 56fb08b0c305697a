#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "posenc/io/manifest.h"
#include "posenc/io/state_dict.h"

namespace posenc::cli {

/// The weights of a file, whatever its format.
struct Weights {
  std::string path;
  WeightsFormat format;
  std::string class_name;  ///< of the script that was saved; "" for its parts and other formats
  StateDict tensors;       ///< those under the prefix, without it
  std::map<std::string, std::string>
      values;  ///< a script's numbers and texts, safetensors' metadata
  std::set<std::string>
      optional;  ///< which of them a counterpart may lack: maybe non-persistent buffers
};

/// Reads the part of a file of any format that is under `prefix`; runs no code of it.
Weights read_weights(const std::string& path, const std::string& prefix);

/// Reads a safetensors file that must have tensors of these names.
StateDict read_tensors(const std::string& path, const std::vector<std::string>& names);

/// `name` float32 (4, 8), ...: the first few, for messages.
std::string described(const StateDict& tensors);

/// (4, 8)
std::string shape_of(const at::Tensor& tensor);

/// float32, as torch names it.
std::string dtype_of(const at::Tensor& tensor);

}  // namespace posenc::cli
