#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/checkpoint/values.h"

namespace torch::optim {
class LRScheduler;
}

namespace posenc::io {

/// A schedule as it is saved: `scheduler.step`, `scheduler.kind` and its numbers.
Values scheduler_values(torch::optim::LRScheduler& scheduler);
bool has_scheduler(const Values& values);

/// The rates that the schedule's own optimiser has.
std::vector<double> current_rates(const torch::optim::LRScheduler& scheduler);

/// The state of a schedule in a file. The constructor checks everything, and throws WeightsError
/// for another kind; apply() cannot fail.
class SchedulerRestore {
 public:
  SchedulerRestore(torch::optim::LRScheduler& scheduler, const Values& values);
  void apply();

 private:
  torch::optim::LRScheduler& scheduler_;
  unsigned step_ = 0;
  std::map<std::string, double> numbers_;
};

}  // namespace posenc::io
