#include "parity/program/runs.h"

#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <filesystem>
#include <map>

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

Result posenc_parity(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), POSENC_PARITY);
  return run_loaded(arguments);
}

void expect_parity_refused(const Result& result, const std::string& subcommand,
                           const std::string& text) {
  expect_refused_by("posenc-parity " + subcommand, result, text);
}

std::vector<std::string> script_files() {
  std::vector<std::string> found;
  for (const std::string folder : {POSENC_LIVE_DIR, POSENC_FIXTURES_DIR}) {
    const std::size_t before = found.size();
    for (const std::string part : {"/torchscript", "/torchscript/mangled"}) {
      if (!std::filesystem::is_directory(folder + part)) continue;
      for (const auto& entry : std::filesystem::directory_iterator(folder + part)) {
        if (entry.path().extension() == ".pt") found.push_back(entry.path());
      }
    }
    EXPECT_GT(found.size(), before)
        << "no TorchScript files in " << folder << "; ctest makes the live ones";
  }
  std::sort(found.begin(), found.end());
  return found;
}

void save_script(const std::string& path, const std::string& name, const StateDict& tensors,
                 const std::string& source) {
  auto module = module_of("__torch__.somewhere." + name, tensors);
  module.define(source);
  module.save(path);
}

}  // namespace posenc::testing
