#pragma once

#include <torch/optim/optimizer.h>

#include <string>
#include <vector>

#include "posenc/train/checkpointable.h"
#include "train/checkpoint/parameter_names.h"

namespace posenc::io {

/// Whether checkpoints hold the optimiser: it implements CheckpointableOptimizer or is LibTorch's
/// Adam, AdamW or SGD.
bool is_savable(const torch::optim::Optimizer& optimizer);
/// The options of each group; of an optimiser that is not savable, the learning rate alone.
std::vector<NamedOptions> options_of(torch::optim::Optimizer& optimizer);
void set_options(torch::optim::Optimizer& optimizer, const std::vector<NamedOptions>& options);
/// Throws c10::ValueError, in the name of `caller`, unless all options are finite and the optimiser
/// accepts them, as they can be changed without its knowledge: no resume takes others.
void check_options(torch::optim::Optimizer& optimizer, const char* caller);
/// The options line by line, to compare processes.
std::string options_text(torch::optim::Optimizer& optimizer);
/// Rule, options, parameters and which states they have, line by line, to compare processes.
std::string optimizer_text(torch::optim::Optimizer& optimizer, const ParameterNames& names);

}  // namespace posenc::io
