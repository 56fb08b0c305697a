#include "parallel/computed_tensors.h"

#include <torch/nn/module.h>

#include "posenc/core/state_dict_traits.h"

namespace posenc::parallel {
namespace {

void add_computed(const torch::nn::Module& module, ComputedTensors& tables) {
  for (const auto& child : module.named_children()) add_computed(*child.value(), tables);
  const auto* const traits = dynamic_cast<const StateDictTraits*>(&module);
  if (traits == nullptr) return;
  const auto all = traits->computed_tables();
  if (all.empty()) return;
  const auto buffers = module.named_buffers();
  for (const ComputedTable& table : all) {
    const at::Tensor* const tensor = buffers.find(table.name);
    if (tensor != nullptr) tables.emplace(tensor->unsafeGetTensorImpl(), table.row_axis);
  }
}

}  // namespace

ComputedTensors computed_tensors(const torch::nn::Module& module) {
  ComputedTensors tables;
  add_computed(module, tables);
  return tables;
}

}  // namespace posenc::parallel
