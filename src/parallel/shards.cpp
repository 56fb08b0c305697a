#include "parallel/shards.h"

#include <c10/util/Exception.h>
#include <torch/nn/module.h>

namespace posenc::parallel {
namespace {

// Calls `visit(module, traits)` for `module` and those below it that have traits, children first.
template <typename Visit>
void for_each_traits(const torch::nn::Module& module, const Visit& visit) {
  for (const auto& child : module.named_children()) for_each_traits(*child.value(), visit);
  const auto* const traits = dynamic_cast<const StateDictTraits*>(&module);
  if (traits != nullptr) visit(module, *traits);
}

}  // namespace

ShardedTensors sharded_tensors(const torch::nn::Module& module) {
  ShardedTensors shards;
  for_each_traits(module, [&](const torch::nn::Module& part, const StateDictTraits& traits) {
    const auto names = traits.sharded_names();
    if (names.empty()) return;
    const auto parameters = part.named_parameters(), buffers = part.named_buffers();
    for (const ShardedName& shard : names) {
      const at::Tensor* tensor = parameters.find(shard.name);
      if (tensor == nullptr) tensor = buffers.find(shard.name);
      TORCH_CHECK_VALUE(tensor != nullptr, "[", part.name(),
                        "] sharded_names() must be names of registered tensors. Got ", shard.name);
      shards.emplace(tensor->unsafeGetTensorImpl(), shard);
    }
  });
  return shards;
}

ComputedTensors computed_tensors(const torch::nn::Module& module) {
  ComputedTensors tables;
  for_each_traits(module, [&](const torch::nn::Module& part, const StateDictTraits& traits) {
    const auto all = traits.computed_tables();
    if (all.empty()) return;
    const auto buffers = part.named_buffers();
    for (const ComputedTable& table : all) {
      const at::Tensor* const tensor = buffers.find(table.name);
      if (tensor != nullptr) tables.emplace(tensor->unsafeGetTensorImpl(), table.row_axis);
    }
  });
  return tables;
}

}  // namespace posenc::parallel
