#include "core/check.h"
#include "core/torch_internals/parts.h"
#include "inference/generate/source_memory.h"
#include "inference/generate/step_decoder.h"
#include "inference/rows/frozen_call.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

using Targets = std::vector<std::vector<int64_t>>;

template <typename Argument>
void give_callers_threads(std::function<bool(const Argument&)>& callback) {
  if (!callback) return;
  callback = [own = std::move(callback)](const Argument& argument) {
    const torch_internals::CallersThreads threads;
    return own(argument);
  };
}

int64_t longest(const Targets& targets) {
  size_t most = 0;
  for (const auto& target : targets) most = std::max(most, target.size());
  return static_cast<int64_t>(most);
}

class FrozenMemory final : public inference::SourceMemory {
 public:
  FrozenMemory(std::shared_ptr<const inference::TransformerModel> model, const torch::Tensor& src,
               const AttentionMask& mask, const inference::Memory& memory, inference::StepSums sums)
      : SourceMemory(model->options, src),
        model_(std::move(model)),
        heads_(*model_, memory),
        mask_(mask),
        sums_(sums) {}

  Hypotheses search(SearchPlan plan, const Indices& sources) const override {
    const inference::FrozenCall call(model_->call);
    check();
    plan.options = with_callers_threads(std::move(plan.options));
    plan.has_read_prefixes = !plan.reads_attention();  // which is of single steps
    auto decoder = decoder_of(sources, plan.rows_per_source, plan.steps);
    if (plan.has_read_prefixes) {
      Targets begun = plan.prefixes;
      for (auto& prefix : begun) prefix.pop_back();
      decoder.read(begun);
    }
    return posenc::search(decoder, plan, torch::kCPU);
  }

  torch::Tensor next_logits(const Indices& sources, const Targets& targets) const override {
    const inference::FrozenCall call(model_->call);
    check();
    return decoder_of(sources, 1, longest(targets)).next_logits(targets);
  }

  std::vector<torch::Tensor> attention(const Indices& sources, const Targets& targets,
                                       const std::vector<LayerHead>& heads) const override {
    const inference::FrozenCall call(model_->call);
    check();
    const auto weights = decoder_of(sources, 1, longest(targets)).read(targets, heads);
    std::vector<torch::Tensor> found;
    int64_t first = 0;
    for (const auto& target : targets) {
      const auto count = static_cast<int64_t>(target.size());
      found.push_back(weights.narrow(1, first, count).clone());
      first += count;
    }
    return found;
  }

 private:
  void check() const { model_->stale_check.check(); }

  // As in forward(), query i of the mask is token i of the target.
  inference::StepDecoder decoder_of(const Indices& sources, int64_t rows, int64_t steps) const {
    const ScoreMask rest =
        heads_.packing.mask_of_keys(mask_, model_->decoder.heads, steps, heads_.heads);
    return {*model_, heads_, rest, sources, rows, steps, sums_};
  }

  const std::shared_ptr<const inference::TransformerModel> model_;
  const inference::MemoryHeads heads_;
  const AttentionMask mask_;
  const inference::StepSums sums_;
};

std::shared_ptr<const inference::SourceMemory> encoded(const FrozenTransformer& model,
                                                       const torch::Tensor& src,
                                                       const AttentionMask& src_mask,
                                                       inference::StepSums sums) {
  auto held = inference::FrozenAccess::model(model);
  const inference::FrozenCall call(held->call);
  held->stale_check.check();
  inference::check_source(*held, src);
  const auto memory = inference::encode(*held, src, src_mask);
  return std::make_shared<FrozenMemory>(std::move(held), src, src_mask, memory, sums);
}

void check_on_cpu(const char* caller, const torch::Tensor& src) {
  TORCH_CHECK_VALUE(!src.defined() || src.is_cpu(), "[", caller,
                    "] src must be on the CPU, as the frozen model is. Got ", src.device());
}

}  // namespace

GenerateOptions with_callers_threads(GenerateOptions options) {
  give_callers_threads(options.stopping_criteria());
  give_callers_threads(options.on_token());
  give_callers_threads(options.progress());
  return options;
}

EncodedSources encode_sources(const FrozenTransformer& model, const torch::Tensor& src,
                              const AttentionMask& src_mask) {
  check_on_cpu("encode_sources", src);
  check_sources("encode_sources", src, model.options());
  return inference::SourceMemory::sources(
      encoded(model, src, AttentionMaskAccess::copied(src_mask), inference::StepSums::OfOneSource));
}

std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  check_on_cpu("generate", src);
  check_sources("generate", src, model.options());
  SearchPlan plan = plan_search(options, src, model.options());
  if (plan.sources == 0) return {};
  return encoded(model, src, src_mask, inference::StepSums::OfAllRows)
      ->search(std::move(plan), all_sources(plan.sources));
}

std::vector<std::vector<Hypothesis>> generate(const FrozenTransformer& model,
                                              const torch::Tensor& src,
                                              const GenerateOptions& options) {
  return generate(model, src, AttentionMask(), options);
}

}  // namespace posenc
