#include <tuple>

#include "models/sentence/stages/stage_kind.h"
#include "posenc/models/functional/pooling.h"

namespace posenc::stages {
namespace {

using sentence::Normalize;

sentence::Stage read_normalize(const Settings& config) {
  Normalize normalize;
  std::tie(normalize.input, normalize.output) = features_in(config);
  return normalize;
}

void follow_normalize(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  const auto& stage = std::get<Normalize>(any);
  widths.check_there(stage.input, place);
  widths.of(stage.output) = widths.of(stage.input);
}

void run_normalize(const sentence::Stage& any, const StageRun& run) {
  const auto& stage = std::get<Normalize>(any);
  run.features.of(stage.output) = functional::l2_normalize(run.features.of(stage.input));
}

}  // namespace

const StageKind kNormalize = {.name = "Normalize",
                              .read = read_normalize,
                              .follow = follow_normalize,
                              .run = run_normalize,
                              .may_lack_settings = true,
                              .takes_rows = true};

}  // namespace posenc::stages
