#pragma once

#include <map>
#include <string>

#include "posenc/io/error.h"

namespace torch {
namespace nn {
class Module;
}
namespace optim {
class LRScheduler;
class Optimizer;
}  // namespace optim
}  // namespace torch

namespace posenc {

/// What takes part in a training run, by reference; a run may do without the pointers.
struct TrainingRun {
  torch::nn::Module& module;
  torch::optim::Optimizer* optimizer =
      nullptr;  ///< LibTorch's Adam, AdamW, SGD; any with OptimizerNotes
  torch::optim::LRScheduler* scheduler = nullptr;  ///< its count of steps
};

/// Numbers of your own: the epoch, the best loss. Kept to the last bit.
using TrainingNumbers = std::map<std::string, double>;

/// Writes all that a run needs to go on as if it had never stopped: the module's state dict, the
/// optimiser's state and options, the scheduler's step, the default generators of the CPU and of
/// CUDA devices, `numbers`. The file is safetensors (`model.*`, `optimizer.*`, `generator.*`, the
/// rest in its metadata) and is written as by save_weights(). Throws WeightsError.
void save_checkpoint(const std::string& path, const TrainingRun& run,
                     const TrainingNumbers& numbers = {});

/// Restores a run of the same modules and optimiser and returns its numbers.
/// All or nothing: everything is read and checked before anything changes. A part that only one of
/// file and run has is an error; generators of devices that are not here are left out.
/// Throws WeightsError. The weights alone: load_weights() with prefix `model.`.
TrainingNumbers load_checkpoint(const std::string& path, const TrainingRun& run);

/// The numbers alone; nothing is loaded. Throws WeightsError.
TrainingNumbers checkpoint_numbers(const std::string& path);

}  // namespace posenc
