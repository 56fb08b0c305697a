#pragma once

#include <cstdint>
#include <string>

#include "io/checkpoint/parameter_names.h"
#include "posenc/train/trainer.h"

namespace posenc::train {

/// Everything that the processes of a group must have in common to train together, apart from the
/// model: data and position, options, optimiser and the states that it has, the current step and
/// the last one. Line by line, so that a message can show the first difference.
std::string run_text(const TrainingRun& run, const io::ParameterNames& names,
                     const PairLoader& loader, const TrainerOptions& options, int64_t step,
                     int64_t end);

}  // namespace posenc::train
