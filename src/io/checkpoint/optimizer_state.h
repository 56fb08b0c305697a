#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/base/targets.h"
#include "io/checkpoint/parameter_names.h"
#include "io/checkpoint/values.h"
#include "posenc/core/checkpointable_optimizer.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// The state of an optimiser as it is saved, by its names in the file; parameters are numbered
/// across all groups, and named. Names other than `optimizer.*` are ignored.
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
/// Where the state of each parameter is in a file: its prefix there, in the optimiser's order.
using StateSlots = std::vector<std::string>;
/// Those that record_of() writes: by number across all groups.
StateSlots own_slots(const torch::optim::Optimizer& optimizer);
/// Those of a file, by the module's names; by number if an older version wrote it. Throws
/// WeightsError unless the file has the optimiser's groups.
StateSlots slots_in(const Values& values, const ParameterNames& names,
                    const torch::optim::Optimizer& optimizer, const torch::nn::Module& module);

/// The shards among an optimiser's parameters.
ParameterShards parameter_shards(const torch::optim::Optimizer& optimizer, const StateSlots& slots,
                                 const ModuleState& module);

/// Whether record_of() knows the optimiser: it implements CheckpointableOptimizer or is LibTorch's
/// Adam, AdamW or SGD.
bool is_savable(const torch::optim::Optimizer& optimizer);
/// Throws WeightsError unless the optimiser is savable.
OptimizerRecord record_of(torch::optim::Optimizer& optimizer, const ParameterNames& names,
                          const ParameterShards& shards = {});

/// The options of each group; of an optimiser that is not savable, the learning rate alone.
std::vector<NamedOptions> options_of(torch::optim::Optimizer& optimizer);
void set_options(torch::optim::Optimizer& optimizer, const std::vector<NamedOptions>& options);
/// Rule, options, parameters and which states they have, line by line, to compare processes.
std::string optimizer_text(torch::optim::Optimizer& optimizer, const ParameterNames& names);

/// A record that fits an optimiser. The constructor checks everything; apply() cannot fail.
class OptimizerRestore {
 public:
  OptimizerRestore(torch::optim::Optimizer& optimizer, const OptimizerRecord& record,
                   const StateSlots& slots);
  ~OptimizerRestore();
  OptimizerRestore(OptimizerRestore&&) noexcept;

  void apply();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace posenc::io
