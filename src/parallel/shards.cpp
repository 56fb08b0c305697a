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

}  // namespace

ShardedTensors sharded_tensors(const torch::nn::Module& module) {
  ShardedTensors shards;
  collect_shards(module, shards);
  return shards;
}

}  // namespace posenc::parallel
