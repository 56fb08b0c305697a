#include <torch/csrc/jit/api/module.h>

#include <map>

#include "cli/program.h"

namespace posenc::testing {
namespace {

torch::jit::Module module_of(const std::string& name, const StateDict& tensors) {
  // Each gets its own compilation unit; otherwise two modules with the same name would share a
  // type.
  torch::jit::Module module(c10::QualifiedName(name),
                            std::make_shared<torch::jit::CompilationUnit>());
  std::map<std::string, StateDict> children;
  for (const auto& item : tensors) {
    const auto dot = item.key().find('.');
    if (dot == std::string::npos) {
      module.register_parameter(item.key(), item.value(), /*is_buffer=*/false);
    } else {
      children[item.key().substr(0, dot)].insert(item.key().substr(dot + 1), item.value());
    }
  }
  for (const auto& [child, own] : children) {
    module.register_module(child, module_of("__torch__.part_" + child, own));
  }
  return module;
}

}  // namespace

void save_script(const std::string& path, const std::string& name, const StateDict& tensors,
                 const std::string& source) {
  auto module = module_of("__torch__.somewhere." + name, tensors);
  module.define(source);
  module.save(path);
}

}  // namespace posenc::testing
