#pragma once

#include <set>
#include <string>

#include "posenc/io/state_dict.h"

namespace posenc::cli {

/// The weights of a file, whatever its format.
struct Weights {
  std::string path;
  std::string class_name;         ///< of the module that was saved; "" where the file has none
  StateDict tensors;              ///< those under the prefix, without it
  std::set<std::string> buffers;  ///< which of them TorchScript has as buffers
};

/// Reads TorchScript (which compiles the file's code) or safetensors, told apart by content.
Weights read_weights(const std::string& path, const std::string& prefix);

/// Reads a safetensors file that must have a tensor `name`.
StateDict read_tensors(const std::string& path, const std::string& name);

/// `name` float32 (4, 8), ...: the first few, for messages.
std::string described(const StateDict& tensors);

/// (4, 8)
std::string shape_of(const at::Tensor& tensor);

/// float32, as torch names it.
std::string dtype_of(const at::Tensor& tensor);

}  // namespace posenc::cli
