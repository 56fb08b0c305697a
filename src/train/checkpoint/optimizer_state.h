#pragma once

#include <torch/optim/optimizer.h>

#include <memory>

#include "posenc/weights/state_dict.h"
#include "train/checkpoint/parameter_names.h"

namespace posenc::io {

/// The state of an optimiser as it is saved, by its names in the file; parameters are numbered
/// across all groups, and named. Names other than `optimizer.*` are ignored.
struct OptimizerRecord {
  StateDict tensors;  ///< `optimizer.<parameter>.exp_avg` ...
  Values values;      ///< `optimizer.kind` (the rule), `optimizer.group.<group>.lr` ...
};

/// Throws WeightsError for an optimiser that is not savable.
OptimizerRecord record_of(torch::optim::Optimizer& optimizer, const ParameterNames& names);

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
