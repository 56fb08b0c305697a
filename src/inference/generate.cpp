#include "core/check.h"
#include "inference/frozen_scope.h"
#include "inference/step_decoder.h"

namespace posenc {

std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  TORCH_CHECK_VALUE(!src.defined() || src.is_cpu(),
                    "[generate] src must be on the CPU, as the frozen model is. Got ",
                    src.device());
  const SearchPlan plan = plan_search(options, src, model.options());
  const inference::FrozenScope scope;
  const auto held = inference::FrozenAccess::model(model);
  const inference::TransformerModel& frozen = *held;
  frozen.stale_check.check();
  if (plan.sources == 0) return {};
  const auto memory = inference::encode(frozen, src, src_mask);
  // As in forward(), query i is token i of the target.
  const ScoreMask rest =
      memory.packing.mask_of_keys(src_mask, frozen.decoder.heads, plan.steps, memory.rows);
  inference::StepDecoder decoder(frozen, memory, rest, plan.rows_per_source, plan.steps);
  return search(decoder, plan, torch::kCPU);
}

std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const GenerateOptions& options) {
  return generate(model, src, AttentionMask(), options);
}

}  // namespace posenc
