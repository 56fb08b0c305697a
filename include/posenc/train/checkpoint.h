#pragma once

#include <map>
#include <string>

#include "posenc/core/module_ref.h"
#include "posenc/train/group.h"
#include "posenc/weights/error.h"

namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace posenc POSENC_EXPORT {

/// The objects of a training run, by reference. The optimiser and the scheduler are optional.
struct TrainingRun {
  ModuleRef module;  ///< the model
  /// LibTorch's Adam, AdamW or SGD, or an optimiser that implements CheckpointableOptimizer, of
  /// parameters of `module`.
  torch::optim::Optimizer* optimizer = nullptr;
  torch::optim::LRScheduler* scheduler = nullptr;  ///< of which the step count is saved
  /// The processes that save and load together; see save_checkpoint().
  RankGroup group = {};
};

/// Numbers of the application, such as the epoch and the best loss, stored exactly.
using CheckpointScalars = std::map<std::string, double>;

/// Saves everything that a run needs to continue as if it had not been interrupted: the module's
/// state dict, the optimiser's options and its state by the parameters' names, the scheduler's step
/// and what it exposes (see CheckpointableScheduler), the default generators of the CPU and of CUDA
/// devices, and `numbers`. The file is a safetensors file (`model.*`,
/// `optimizer.*`, `generator.*`, and metadata) and is replaced atomically, as by save_weights().
///
/// With a group, every process calls this. Rank 0 writes one file, the same as one process would
/// write, with the generators of all processes.
///
/// ```cpp
/// posenc::TokenEmbedding model(100, 8);
/// posenc::FusedAdam adam(model->parameters(), 1e-3);
/// posenc::save_checkpoint("run.safetensors", {model, &adam}, {{"epoch", 3}});
/// auto numbers = posenc::load_checkpoint("run.safetensors", {model, &adam});  // with the epoch
/// ```
///
/// Errors: WeightsError; c10::ValueError for a parameter of the optimiser that the module does not
/// have, which would be lost; GroupError on the other processes if one cannot save.
void save_checkpoint(const std::string& path, const TrainingRun& run,
                     const CheckpointScalars& numbers = {});

/// Restores a run with the same modules and optimiser and returns its numbers. Everything is read
/// and checked before anything is changed. A part that exists only in the file or only in the run
/// is an error, and so are other parameter groups and a schedule of another kind; generators of
/// devices that this machine does not have are ignored. In files of older versions, states go by
/// the order of the parameters. To load only the weights, use load_weights() with the prefix
/// `model.`.
///
/// With a group, every process calls this and reads the file, which another number of processes may
/// have written. With the same number the run continues bit for bit; with another the generators
/// are seeded anew, from the saved ones and the rank.
///
/// Errors: those of save_checkpoint().
CheckpointScalars load_checkpoint(const std::string& path, const TrainingRun& run);

/// Returns the numbers in a checkpoint without loading anything else.
///
/// Errors: WeightsError.
CheckpointScalars checkpoint_numbers(const std::string& path);

}  // namespace posenc
