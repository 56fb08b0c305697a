#pragma once

#include <torch/csrc/jit/api/module.h>

#include <map>
#include <string>
#include <vector>

namespace posenc::parity {

/// A TorchScript module in eval mode. Loading compiles, and calling runs, the file's own code.
class Script {
 public:
  struct Argument {
    std::string name;
    bool required;  ///< has no default
  };

  /// Loads the module, or the submodule that `prefix` ("encoder.embed.") names.
  Script(const std::string& path, const std::string& prefix);

  std::string class_name() const;
  bool has_method(const std::string& name) const;
  std::vector<Argument> arguments(const std::string& method) const;
  /// `forward(x, mask)`: the method's required arguments.
  std::string signature(const std::string& method) const;

  /// Throws CommandError with the last line of the script's error if it fails or returns no tensor.
  at::Tensor call(const std::string& method, const std::vector<at::Tensor>& arguments,
                  const std::map<std::string, at::Tensor>& by_name = {}) const;

 private:
  torch::jit::Method method(const std::string& name) const;

  torch::jit::Module module_;
};

}  // namespace posenc::parity
