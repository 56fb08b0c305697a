#pragma once

#include <string>

#include "posenc/io/checkpoint.h"

namespace posenc::io {

/// Throws the WeightsError that save_checkpoint() would throw for an optimiser that cannot be
/// saved, or for a path that cannot be written on rank 0. Writes nothing.
void check_can_save(const std::string& path, const TrainingRun& run);

/// The first trained tensor of a run with an element that is not finite, as `out.bias` or `the
/// state exp_avg of out.bias`; empty if all are finite. Waits for a GPU.
std::string first_not_finite(const TrainingRun& run);

}  // namespace posenc::io
