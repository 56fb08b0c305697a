#pragma once

#include <string>
#include <vector>

#include "train/checkpoint/values.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace posenc::io {

/// The names of an optimiser's parameters in its module, by group.
using ParameterNames = std::vector<std::vector<std::string>>;

/// Throws c10::ValueError, in the name of `caller`, for a parameter that is not the module's:
/// what a run trains is what it saves.
ParameterNames parameter_names(const torch::nn::Module& module,
                               const torch::optim::Optimizer& optimizer, const char* caller);

/// Where the state of each parameter is in a file: its prefix there, in the optimiser's order.
using StateSlots = std::vector<std::string>;
/// Those of a file, by the module's names; by number if an older version wrote it. Throws
/// WeightsError unless the file has the optimiser's groups.
StateSlots slots_in(const Values& values, const ParameterNames& names,
                    const torch::optim::Optimizer& optimizer, const torch::nn::Module& module);

}  // namespace posenc::io
