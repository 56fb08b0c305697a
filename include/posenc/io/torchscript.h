#pragma once

#include <set>
#include <string>

#include "posenc/io/state_dict.h"

namespace posenc {

/// The weights of a TorchScript file and the class that it was made from.
struct TorchScriptFile {
  std::string
      class_name;     ///< unqualified, without TorchScript's mangling, such as `TokenEmbedding`
  StateDict tensors;  ///< in PyTorch's order, on the CPU
  std::set<std::string> buffers;  ///< which of them are buffers, non-persistent ones included
};

/// Reads `path` with torch::jit::load, which compiles the file's code: for trusted files only.
/// Throws c10::ValueError that names the file and the reason when it cannot be read.
TorchScriptFile load_torchscript(const std::string& path);

}  // namespace posenc
