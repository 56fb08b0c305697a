#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/base/targets.h"
#include "io/checkpoint/parameter_names.h"
#include "io/checkpoint/values.h"

namespace posenc::io {

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

}  // namespace posenc::io
