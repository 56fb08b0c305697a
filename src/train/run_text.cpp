#include "train/run_text.h"

#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include "posenc/core/checkpointable_optimizer.h"

namespace posenc::train {
namespace {

// LibTorch's optimisers show no option but the learning rate.
std::string optimizer_text(torch::optim::Optimizer& optimizer) {
  std::string text;
  const auto* described = dynamic_cast<const CheckpointableOptimizer*>(&optimizer);
  if (described != nullptr) text += "optimizer " + described->rule() + "\n";
  const auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    text += fmt::format("parameter group {}: {} parameters, lr {}\n", i, groups[i].params().size(),
                        groups[i].options().get_lr());
    if (described == nullptr) continue;
    for (const auto& [name, value] : described->named_options(i)) {
      text += fmt::format("parameter group {}: {} {}\n", i, name, value);
    }
  }
  return text;
}

}  // namespace

std::string run_text(const TrainingRun& run, const PairLoader& loader,
                     const TrainerOptions& options, int64_t step, int64_t end) {
  std::string text;
  for (const auto& [name, value] : loader.state())
    text += fmt::format("loader {} {}\n", name, value);
  text += fmt::format("step {} until {} of {}\n", step, end, options.steps());
  text += fmt::format("clip_norm {}\nmicro_batches {}\nglobal_loss {}\nweight {}\n",
                      options.clip_norm(), options.micro_batches(), options.global_loss(),
                      options.weight() ? "given" : "targets");
  text += fmt::format("checkpoint {} every {}\nreport every {}\nscheduler {}\n",
                      options.checkpoint().empty() ? "none" : "given", options.checkpoint_every(),
                      options.report_every(), run.scheduler != nullptr ? "given" : "none");
  return text + optimizer_text(*run.optimizer);
}

}  // namespace posenc::train
