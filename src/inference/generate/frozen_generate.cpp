#include "core/check.h"
#include "core/torch_internals/parts.h"
#include "inference/generate/step_decoder.h"
#include "inference/rows/frozen_scope.h"

namespace posenc {
namespace {

template <typename Argument>
void give_callers_threads(std::function<bool(const Argument&)>& callback) {
  if (!callback) return;
  callback = [own = std::move(callback)](const Argument& argument) {
    const torch_internals::CallersThreads threads;
    return own(argument);
  };
}

}  // namespace

GenerateOptions with_callers_threads(GenerateOptions options) {
  give_callers_threads(options.stopping_criteria());
  give_callers_threads(options.on_token());
  give_callers_threads(options.progress());
  return options;
}

std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  TORCH_CHECK_VALUE(!src.defined() || src.is_cpu(),
                    "[generate] src must be on the CPU, as the frozen model is. Got ",
                    src.device());
  const SearchPlan plan = plan_search(with_callers_threads(options), src, model.options());
  const inference::FrozenScope scope;
  const auto held = inference::FrozenAccess::model(model);
  const inference::TransformerModel& frozen = *held;
  frozen.stale_check.check();
  if (plan.sources == 0) return {};
  const torch_internals::CallThreads threads(frozen.call);
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
