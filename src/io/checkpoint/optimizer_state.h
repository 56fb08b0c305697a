#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "io/base/targets.h"
#include "io/checkpoint/values.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// The state of an optimiser as it is saved, by its names in the file; parameters are numbered
/// across all groups. Names other than `optimizer.*` are ignored.
struct OptimizerRecord {
  StateDict tensors;   ///< `optimizer.<parameter>.exp_avg` ...
  Values values;       ///< `optimizer.kind` (the rule), `optimizer.group.<group>.lr` ...
  Shards shards = {};  ///< of `tensors`: the state of a shard is split as the shard is
};

/// The rows [first, first + rows) of `whole` that this process holds of a parameter and its state.
struct OwnRows {
  int64_t first, rows, whole;
};
/// By the prefix of a parameter's state: `optimizer.3.`.
using ParameterShards = std::map<std::string, OwnRows>;
/// The shards among an optimiser's parameters.
ParameterShards parameter_shards(const torch::optim::Optimizer& optimizer,
                                 const ModuleState& module);

/// Throws WeightsError unless the optimiser implements CheckpointableOptimizer or is LibTorch's
/// Adam, AdamW or SGD.
OptimizerRecord record_of(torch::optim::Optimizer& optimizer, const ParameterShards& shards = {});

/// A record that fits an optimiser. The constructor checks everything; apply() cannot fail.
class OptimizerRestore {
 public:
  OptimizerRestore(torch::optim::Optimizer& optimizer, const OptimizerRecord& record);
  ~OptimizerRestore();
  OptimizerRestore(OptimizerRestore&&) noexcept;

  void apply();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace posenc::io
