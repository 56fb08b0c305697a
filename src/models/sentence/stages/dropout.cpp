#include <ATen/ops/dropout.h>
#include <c10/util/Exception.h>

#include "models/sentence/stages/stage_kind.h"

namespace posenc::stages {
namespace {

using sentence::Dropout;

sentence::Stage read_dropout(const Settings& config) {
  return Dropout{config.real("dropout", 0.2)};
}

void follow_dropout(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  widths.check_there(sentence::Feature::Sentence, place);
  const double p = std::get<Dropout>(any).p;
  TORCH_CHECK_VALUE(p >= 0.0 && p <= 1.0, place, ", must have a probability. Got ", p);
}

void run_dropout(const sentence::Stage& any, const StageRun& run) {
  at::Tensor& x = run.features.sentence;
  if (run.is_training) x = at::dropout(x, std::get<Dropout>(any).p, true);
}

}  // namespace

const StageKind kDropout = {.name = "Dropout",
                            .read = read_dropout,
                            .follow = follow_dropout,
                            .run = run_dropout,
                            .may_lack_settings = true};

}  // namespace posenc::stages
