#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <vector>

#include "io/checkpoint/parameter_names.h"
#include "io/checkpoint/values.h"

namespace posenc::io {

/// Where the state of each parameter is in a file: its prefix there, in the optimiser's order.
using StateSlots = std::vector<std::string>;
/// Those of a file, by the module's names; by number if an older version wrote it. Throws
/// WeightsError unless the file has the optimiser's groups.
StateSlots slots_in(const Values& values, const ParameterNames& names,
                    const torch::optim::Optimizer& optimizer, const torch::nn::Module& module);

}  // namespace posenc::io
