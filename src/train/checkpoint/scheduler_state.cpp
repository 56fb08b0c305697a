#include "train/checkpoint/scheduler_state.h"

#include <c10/util/Exception.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>

#include <limits>

#include "base/text.h"
#include "posenc/train/checkpointable.h"
#include "posenc/weights/error.h"

namespace posenc::io {
namespace {

using torch::optim::LRScheduler;
using Code = WeightsErrorCode;

constexpr const char* kStep = "scheduler.step";
constexpr const char* kKind = "scheduler.kind";
constexpr const char* kPrefix = "scheduler.";

// LibTorch exposes these to derived classes only.
struct Access : LRScheduler {
  static unsigned& step_of(LRScheduler& scheduler) { return scheduler.*(&Access::step_count_); }
  static std::vector<double> rates_of(const LRScheduler& scheduler) {
    return (scheduler.*(&Access::get_current_lrs))();
  }
};

CheckpointableScheduler* notes_of(LRScheduler& scheduler) {
  return dynamic_cast<CheckpointableScheduler*>(&scheduler);
}

// Empty for one of the program's own that does not tell.
std::string kind_of(LRScheduler& scheduler) {
  if (const auto* const notes = notes_of(scheduler)) return notes->kind();
  return dynamic_cast<torch::optim::StepLR*>(&scheduler) != nullptr ? "StepLR" : "";
}

}  // namespace

Values scheduler_values(LRScheduler& scheduler) {
  Values values = {{kStep, to_text(static_cast<int64_t>(Access::step_of(scheduler)))}};
  const std::string kind = kind_of(scheduler);
  if (!kind.empty()) values[kKind] = kind;
  if (const auto* const notes = notes_of(scheduler)) {
    for (const auto& [name, number] : notes->numbers()) values[kPrefix + name] = to_text(number);
  }
  return values;
}

bool has_scheduler(const Values& values) { return values.count(kStep) != 0; }

std::vector<double> current_rates(const LRScheduler& scheduler) {
  return Access::rates_of(scheduler);
}

SchedulerRestore::SchedulerRestore(LRScheduler& scheduler, const Values& values)
    : scheduler_(scheduler) {
  constexpr auto kMost = std::numeric_limits<decltype(step_)>::max();
  step_ = static_cast<unsigned>(read_count(values, kStep, kMost));
  const auto saved = values.find(kKind);
  if (saved == values.end()) return;  // an older file, or a schedule that does not tell
  const std::string kind = kind_of(scheduler);
  if (kind != saved->second) {
    throw WeightsError(Code::Unsupported, "must hold the state of the scheduler " +
                                              (kind.empty() ? std::string("of the run") : kind) +
                                              ". Got " + in_quotes(saved->second));
  }
  auto* const notes = notes_of(scheduler);
  if (notes == nullptr) return;
  const auto present = notes->numbers();
  numbers_ = present;
  for (auto& [name, number] : numbers_) read_value(values, kPrefix + name, number);
  try {  // the schedule rejects bad values when they are set
    notes->set_numbers(numbers_);
  } catch (const c10::Error& error) {
    throw WeightsError(Code::Corrupt, std::string("must have numbers that the scheduler takes: ") +
                                          error.what_without_backtrace());
  }
  notes->set_numbers(present);
}

void SchedulerRestore::apply() {
  Access::step_of(scheduler_) = step_;
  if (!numbers_.empty()) notes_of(scheduler_)->set_numbers(numbers_);
}

}  // namespace posenc::io
