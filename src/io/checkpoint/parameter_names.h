#pragma once

#include <string>
#include <vector>

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

}  // namespace posenc::io
