#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace posenc::cli {

struct ScriptArgument {
  std::string name;
  bool required;  ///< has no default
};

/// A TorchScript module in eval mode. Loading compiles, and calling runs, the file's own code.
class Script {
 public:
  /// Loads the module, or the submodule that `prefix` ("encoder.embed.") names.
  Script(const std::string& path, const std::string& prefix);
  ~Script();

  /// Its unqualified class name; "" if the prefix does not name a submodule.
  std::string class_name() const;
  bool has_method(const std::string& name) const;
  /// `forward(x, mask)`: the method's required arguments.
  std::string signature(const std::string& method) const;
  std::vector<ScriptArgument> arguments(const std::string& method) const;

  /// Throws CommandError with the last line of the script's error if it fails or returns no tensor.
  at::Tensor call(const std::string& method, const std::vector<at::Tensor>& arguments,
                  const std::map<std::string, at::Tensor>& by_name = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace posenc::cli
