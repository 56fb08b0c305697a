#pragma once

#include <set>
#include <string>

#include "posenc/train/checkpoint.h"
#include "posenc/weights/state_dict.h"

namespace posenc::io {

/// Throws the WeightsError that save_checkpoint() would throw for an optimiser that cannot be
/// saved, or for a path that cannot be written on rank 0. Writes nothing.
void check_can_save(const std::string& path, const TrainingRun& run);

/// The tensors of the module's state dict that are not trained and have an element that is not
/// finite, such as a mask. Waits for a GPU.
std::set<std::string> untrained_not_finite(const TrainingRun& run);

/// The state tensors of an optimiser that can be saved, as `the state exp_avg of out.bias`.
StateDict named_states(const TrainingRun& run);

/// The first tensor that a checkpoint would hold with an element that is not finite, as `out.bias`
/// or `the state exp_avg of out.bias`; empty if there is none. Of those that are not trained,
/// `before` are allowed. Waits for a GPU.
std::string first_not_finite(const TrainingRun& run, const std::set<std::string>& before);

}  // namespace posenc::io
