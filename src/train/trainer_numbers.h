#pragma once

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

}  // namespace posenc::train
