#include "train/run_text.h"

#include <fmt/format.h>

#include "io/checkpoint/optimizer_options.h"

namespace posenc::train {

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
