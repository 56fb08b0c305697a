#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <string>

#include "io/checkpoint/values.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// The state of an optimiser as it is saved, under the names that it has in the file; parameters
/// are counted through all groups. Other names than `optimizer.*` do not matter.
struct OptimizerRecord {
  StateDict tensors;  ///< `optimizer.<parameter>.exp_avg` ...
  Values values;      ///< `optimizer.kind` (the rule), `optimizer.group.<group>.lr` ...
};

/// Throws WeightsError for an optimiser that neither has CheckpointableOptimizer nor is LibTorch's
/// Adam, AdamW or SGD.
OptimizerRecord record_of(torch::optim::Optimizer& optimizer);

/// A record that fits an optimiser. Making one checks everything; apply() cannot fail.
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
