#include "train/check_run.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <filesystem>
#include <map>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "posenc/train/checkpointable.h"
#include "train/checkpoint/optimizer_options.h"
#include "train/checkpoint/run_checks.h"
#include "train/checkpoint/scheduler_state.h"

namespace posenc::train {
namespace {

constexpr const char* kName = "Trainer";

// LibTorch's optimisers step a parameter as often as it is listed.
void check_once(const torch::optim::Optimizer& optimizer, const io::ParameterNames& names) {
  std::map<const at::TensorImpl*, std::pair<std::size_t, std::size_t>> indices;
  const auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t k = 0; k < groups[i].params().size(); ++k) {
      const auto [first, is_new] =
          indices.emplace(groups[i].params()[k].unsafeGetTensorImpl(), std::pair(i, k));
      const auto [group, index] = first->second;
      TORCH_CHECK_VALUE(
          is_new, "[Trainer] an optimiser must hold each parameter once. Got ", names[i][k], " as ",
          group == i
              ? c10::str("parameters ", index, " and ", k, " of group ", i)
              : c10::str("parameter ", index, " of group ", group, " and ", k, " of group ", i),
          "; posenc's optimisers, such as FusedAdam, step it once");
    }
  }
}

// LibTorch does not show the optimiser of a schedule, but its rates: they are the run's if a change
// of those shows in them.
bool sets_rates_of(const torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer) {
  auto& groups = optimizer.param_groups();
  if (groups.empty() || !groups[0].has_options()) return true;
  const double rate = groups[0].options().get_lr();
  const double other = rate == 0.0 ? 1.0 : 0.5 * rate;
  groups[0].options().set_lr(other);
  const auto seen = io::current_rates(scheduler);
  groups[0].options().set_lr(rate);
  return seen.size() == groups.size() && seen[0] == other &&
         io::current_rates(scheduler)[0] == rate;
}

void check_scheduler(torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer) {
  TORCH_CHECK_VALUE(sets_rates_of(scheduler, optimizer),
                    "[Trainer] the scheduler must be of the run's optimiser. Got one that sets the "
                    "rates of another");
  const auto* const notes = dynamic_cast<const CheckpointableScheduler*>(&scheduler);
  const std::size_t groups = optimizer.param_groups().size();
  if (notes == nullptr || notes->kind() != "LambdaLR") return;
  TORCH_CHECK_VALUE(notes->numbers().size() == groups,
                    "[Trainer] the scheduler must have a rate for each parameter group. Got ",
                    notes->numbers().size(), " for ", groups,
                    "; make the schedule after the last group is added");
}

}  // namespace

io::ParameterNames check_run(const TrainingRun& run, const std::string& checkpoint) {
  auto names = io::parameter_names(*run.module, *run.optimizer, kName);
  check_once(*run.optimizer, names);
  io::check_options(*run.optimizer, kName);
  if (run.scheduler != nullptr) check_scheduler(*run.scheduler, *run.optimizer);
  if (!checkpoint.empty()) io::check_can_save(checkpoint, run);
  return names;
}

void check_owner(const std::string& path, double run_id) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  CheckpointScalars saved;
  try {
    saved = checkpoint_numbers(path);
  } catch (const WeightsError&) {
  }
  const auto id = saved.find(kRun);
  if ((id == saved.end() ? 0.0 : id->second) == run_id && saved.count(kStep) != 0) return;
  const auto step = saved.find(kStep);
  TORCH_CHECK_VALUE(false, "[Trainer] ", path, ": the file must be of this run. Got ",
                    step == saved.end()
                        ? std::string("a file that is no checkpoint of a Trainer; save elsewhere")
                        : c10::str("that of another run, at step ", step->second,
                                   "; resume() from it, save elsewhere"),
                    ", or allow it by overwrite(true)");
}

double new_run_id() {
  std::random_device device;
  const uint64_t bits = (static_cast<uint64_t>(device()) << 32) | device();
  return static_cast<double>((bits >> 11) | 1);  // a double counts to 2^53
}

std::string run_text(const TrainingRun& run, const io::ParameterNames& names,
                     const PairLoader& loader, const TrainerOptions& options, int64_t step,
                     int64_t end) {
  std::string text;
  for (const auto& [name, value] : loader.state())
    text += fmt::format("loader {} {}\n", name, value);
  text += fmt::format("step {} until {} of {}\n", step, end, options.steps());
  text += fmt::format("clip_norm {}\nmicro_batches {}\nweight {}\n", options.clip_norm(),
                      options.micro_batches(), options.weight() ? "given" : "targets");
  text += fmt::format("checkpoint {} every {}\nreport every {}\nscheduler {}\n",
                      options.checkpoint().empty() ? "none" : "given", options.checkpoint_every(),
                      options.report_every(), run.scheduler != nullptr ? "given" : "none");
  return text + io::optimizer_text(*run.optimizer, names);
}

}  // namespace posenc::train
