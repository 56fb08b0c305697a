#include "posenc/models/sentence_stages.h"

#include <algorithm>
#include <ostream>

#include "core/print_fields.h"
#include "models/sentence/stages/stage_kind.h"

namespace posenc {
namespace {

using sentence::PoolingMode;

template <typename Kind, typename Condition>
bool any_stage(const SentenceStagesOptions& options, const Condition& condition) {
  return std::any_of(options.stages().begin(), options.stages().end(), [&](const auto& stage) {
    const auto* found = std::get_if<Kind>(&stage);
    return found != nullptr && condition(*found);
  });
}

}  // namespace

SentenceStagesImpl::SentenceStagesImpl(SentenceStagesOptions options_)
    : options(std::move(options_)) {
  SentenceStagesImpl::reset();
}

void SentenceStagesImpl::reset() {
  widths_after(options);
  for (std::size_t i = 0; i < options.stages().size(); ++i) {
    const sentence::Stage& stage = options.stages()[i];
    const StageKind& kind = kind_of(stage);
    if (kind.make != nullptr) register_module(std::to_string(i + 1), kind.make(stage));
  }
}

void SentenceStagesImpl::reset_parameters() {
  for (const auto& stage : children()) dynamic_cast<StageModule&>(*stage).reset_parameters();
}

void SentenceStagesImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "SentenceStages", options, SentenceStagesOptions(-1));
}

int64_t SentenceStagesImpl::width() const { return widths_after(options).of(options.result()); }

bool SentenceStagesImpl::excludes_prompt() const {
  return any_stage<sentence::Pooling>(options,
                                      [](const auto& pooling) { return !pooling.include_prompt; });
}

bool SentenceStagesImpl::defines_empty() const {
  return !any_stage<sentence::Pooling>(options, [](const auto& pooling) {
    return std::any_of(pooling.modes.begin(), pooling.modes.end(), [](PoolingMode mode) {
      return mode == PoolingMode::CLS || mode == PoolingMode::Max;
    });
  });
}

bool SentenceStagesImpl::needs_hidden_states() const {
  return any_stage<sentence::WeightedLayerPooling>(options, [](const auto&) { return true; });
}

torch::Tensor SentenceStagesImpl::forward(const torch::Tensor& hidden,
                                          const torch::Tensor& attention_mask,
                                          int64_t prompt_length, const torch::Tensor& input_ids,
                                          const std::vector<torch::Tensor>& hidden_states,
                                          std::optional<int64_t> max_active_dims) {
  const int64_t rank = options.takes_sentences() ? 2 : 3;
  const bool has_hidden = options.d_model() > 0;
  TORCH_CHECK_VALUE(has_hidden || !hidden.defined(),
                    "[SentenceStages] hidden must be undefined for stages that are given ids "
                    "alone. Got ",
                    hidden.sizes());
  TORCH_CHECK_VALUE(!max_active_dims || *max_active_dims > 0,
                    "[SentenceStages] max_active_dims must be positive. Got ",
                    max_active_dims.value_or(0));
  TORCH_CHECK_VALUE(!has_hidden || (hidden.dim() == rank && hidden.size(-1) == options.d_model()),
                    "[SentenceStages] hidden must be ", rank == 2 ? "(B, " : "(B, L, ",
                    options.d_model(), "). Got ", hidden.sizes());
  TORCH_CHECK_VALUE(prompt_length >= 0, "[SentenceStages] prompt_length must not be negative. Got ",
                    prompt_length);
  const auto sizes = has_hidden ? hidden.sizes() : at::IntArrayRef();
  const StageInputs inputs = {attention_mask, input_ids,     sizes,
                              prompt_length,  hidden_states, max_active_dims};
  StageFeatures features;
  if (has_hidden)
    features.of(rank == 2 ? sentence::Feature::Sentence : sentence::Feature::Tokens) = hidden;
  features.mask = attention_mask;
  features.ids = input_ids;
  const auto& parts = children();
  std::size_t used = 0;
  for (std::size_t i = 0; i < options.stages().size(); ++i) {
    const auto& stage = options.stages()[i];
    const StageKind& kind = kind_of(stage);
    torch::nn::Module* const module = kind.make != nullptr ? parts[used++].get() : nullptr;
    kind.run(stage, {inputs, features, module, {i + 1, kind.name}, is_training()});
  }
  return features.of(options.result());
}

}  // namespace posenc
