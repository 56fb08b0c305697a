#pragma once

#include <cstdint>
#include <string>

#include "posenc/train/trainer.h"
#include "train/checkpoint/parameter_names.h"

namespace posenc::train {

// The names of a Trainer's own numbers in its checkpoints.
constexpr const char* kStep = "step";
constexpr const char* kSeconds = "seconds";
constexpr const char* kRun = "run";         // the run's id
constexpr const char* kOption = "option.";  // options that determine the result
constexpr const char* kLoader = "loader.";
constexpr const char* kRequiresGrad = "requires_grad.";  // by parameter: 0 or 1
constexpr const char* kOwn = "own.";                     // the application's
constexpr const char* kRanks = "exchange_ranks";         // the number of processes
constexpr const char* kExchange = "exchange.";           // by parameter, DataParallel::histories()

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

/// Everything that the processes of a group must have in common to train together, apart from the
/// model: data and position, options, optimiser and the states that it has, the current step and
/// the last one. Line by line, so that a message can show the first difference.
std::string run_text(const TrainingRun& run, const io::ParameterNames& names,
                     const PairLoader& loader, const TrainerOptions& options, int64_t step,
                     int64_t end);

}  // namespace posenc::train
