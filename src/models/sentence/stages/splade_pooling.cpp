#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <tuple>

#include "models/sentence/stages/stage_kind.h"

namespace posenc::stages {
namespace {

using sentence::SpladePooling;
using sentence::SpladeStrategy;

sentence::Stage read_splade(const Settings& config) {
  const std::string strategy = config.text("pooling_strategy", "max");
  if (strategy != "max" && strategy != "sum")
    config.refuse("pooling_strategy", "must be max or sum");
  const std::string function = config.text("activation_function", "relu");
  if (function != "relu" && function != "log1p_relu")
    config.refuse("activation_function", "must be relu or log1p_relu");
  return SpladePooling{strategy == "max" ? SpladeStrategy::Max : SpladeStrategy::Sum,
                       function == "relu" ? 1 : 2};
}

void follow_splade(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  const int64_t logs = std::get<SpladePooling>(any).logs;
  TORCH_CHECK_VALUE(logs == 1 || logs == 2, place, ": logs must be 1 or 2. Got ", logs);
  widths.check_there(sentence::Feature::Tokens, place);
  widths.sentence = widths.tokens;
}

// f increases, so that of the tokens only the largest logit is needed, which the gradient goes to.
// f is 0 for tokens that are masked.
void run_splade(const sentence::Stage& any, const StageRun& run) {
  const auto& stage = std::get<SpladePooling>(any);
  at::Tensor logits = run.features.tokens;
  if (const at::Tensor& mask = run.features.mask; mask.defined())
    logits = logits.masked_fill(mask.eq(0).unsqueeze(-1), 0.0);
  const bool is_max = stage.strategy == SpladeStrategy::Max;
  const at::Tensor weights =
      splade_weights(is_max ? std::get<0>(logits.max(1)) : logits, stage.logs);
  run.features.sentence = is_max ? weights : weights.sum(1);
}

}  // namespace

at::Tensor splade_weights(const at::Tensor& logits, int64_t logs) {
  at::Tensor weights = logits.relu();
  for (int64_t i = 0; i < logs; ++i) weights = weights.log1p();
  return weights;
}

const StageKind kSpladePooling = {
    .name = "SpladePooling", .read = read_splade, .follow = follow_splade, .run = run_splade};

}  // namespace posenc::stages
