#include "weights/common/module_state.h"

#include <torch/nn/module.h>

#include <string>
#include <unordered_map>

#include "weights/common/tensor.h"

namespace posenc::io {
namespace {

void add_notes(const StateDictTraits& notes, const std::string& prefix, ModuleState& state) {
  for (auto& table : notes.computed_tables()) {
    state.tables.push_back(table);
    state.tables.back().name = prefix + table.name;
  }
  for (const auto& name : notes.non_persistent_names()) state.non_persistent.insert(prefix + name);
  for (const auto& [alias, name] : notes.tied_names()) {
    const at::Tensor* tensor = state.tensors.find(prefix + name);
    if (tensor != nullptr && !state.tensors.contains(prefix + alias)) {
      state.tensors.insert(prefix + alias, at::Tensor(*tensor));
    }
  }
}

// Not Module::named_parameters(true), which lists all parameters before all buffers.
void collect(const torch::nn::Module& module, const std::string& prefix, ModuleState& state) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    state.tensors.insert(prefix + item.key(), item.value());
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    state.tensors.insert(prefix + item.key(), item.value());
  }
  for (const auto& child : module.named_children()) {
    collect(*child.value(), prefix + child.key() + ".", state);
  }
  // Last, since a name may refer to a tensor of a child.
  if (const auto* notes = dynamic_cast<const StateDictTraits*>(&module)) {
    add_notes(*notes, prefix, state);
  }
}

}  // namespace

ModuleState module_state(const torch::nn::Module& module) { return module_state(module, {}); }

ModuleState module_state(const torch::nn::Module& module, const std::vector<TiedName>& tied) {
  ModuleState state;
  collect(module, "", state);
  for (const auto& [alias, name] : tied) {
    state.tensors.insert(alias, at::Tensor(state.tensors[name]));
  }
  for (const auto& name : state.non_persistent) {
    if (state.tensors.contains(name)) state.tensors.erase(name);
  }
  return state;
}

std::vector<Target> targets_of(const ModuleState& state) {
  std::vector<Target> targets;
  targets.reserve(state.tensors.size());
  std::unordered_map<const void*, std::vector<std::size_t>> by_address;
  for (const auto& item : state.tensors) {
    const at::Tensor& tensor = item.value();
    const std::size_t index = targets.size();
    std::size_t first = index;
    const void* address = tensor.has_storage() && tensor.numel() > 0
                              ? tensor.const_data_ptr()
                              : static_cast<const void*>(tensor.unsafeGetTensorImpl());
    for (const std::size_t other : by_address[address]) {
      if (same_memory(targets[other].tensor, tensor)) {
        first = other;
        break;
      }
    }
    if (first == index) by_address[address].push_back(index);
    targets.push_back({item.key(), tensor, first});
  }
  return targets;
}

}  // namespace posenc::io
