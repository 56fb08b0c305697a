#pragma once

#include <string>

#include "io/checkpoint/parameter_names.h"
#include "posenc/train/trainer.h"

namespace posenc::train {

/// Looks at what a run is made of, before its first step: the optimiser's parameters are the
/// module's, each once; its options are ones that it accepts; the schedule is of the optimiser; the
/// run can be saved to its file. Returns the parameters' names. Throws c10::ValueError or
/// WeightsError, and sends nothing.
io::ParameterNames check_run(const TrainingRun& run, const std::string& checkpoint);

/// Throws c10::ValueError unless `path` is free or holds the run with this id; 0: one of a version
/// without ids.
void check_owner(const std::string& path, double run_id);

/// A number that no other run has. Draws from no generator of LibTorch.
double new_run_id();

}  // namespace posenc::train
