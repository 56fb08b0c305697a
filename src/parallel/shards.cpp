#include "parallel/shards.h"

#include <c10/util/Exception.h>
#include <torch/nn/module.h>

namespace posenc::parallel {
namespace {

void collect_shards(const torch::nn::Module& module, ShardedTensors& shards) {
  for (const auto& child : module.named_children()) collect_shards(*child.value(), shards);
  const auto* const traits = dynamic_cast<const StateDictTraits*>(&module);
  if (traits == nullptr) return;
  const auto names = traits->sharded_names();
  if (names.empty()) return;
  const auto parameters = module.named_parameters(), buffers = module.named_buffers();
  for (const ShardedName& shard : names) {
    const at::Tensor* tensor = parameters.find(shard.name);
    if (tensor == nullptr) tensor = buffers.find(shard.name);
    TORCH_CHECK_VALUE(tensor != nullptr, "[", module.name(),
                      "] sharded_names() must be names of registered tensors. Got ", shard.name);
    shards.emplace(tensor->unsafeGetTensorImpl(), shard);
  }
}

void collect_computed(const torch::nn::Module& module, ComputedTensors& tables) {
  for (const auto& child : module.named_children()) collect_computed(*child.value(), tables);
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
  collect_computed(module, tables);
  return tables;
}

ShardedTensors sharded_tensors(const torch::nn::Module& module) {
  ShardedTensors shards;
  collect_shards(module, shards);
  return shards;
}

}  // namespace posenc::parallel
