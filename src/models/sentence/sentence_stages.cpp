#include "posenc/models/sentence_stages.h"

#include <algorithm>
#include <ostream>

#include "core/print_fields.h"
#include "models/sentence/stages/token_rows.h"

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

void check_result(const SentenceStagesOptions& options, sentence::Feature result,
                  const char* other) {
  TORCH_CHECK_VALUE(options.result() == result, "[SentenceStages] result must be ",
                    result == sentence::Feature::Tokens ? "Tokens" : "Sentence",
                    ": for another there is ", other, "(). Got another");
}

at::IntArrayRef sizes_of(const at::Tensor& hidden) {
  return hidden.defined() ? hidden.sizes() : at::IntArrayRef();
}

StageFeatures run_stages(const SentenceStagesImpl& model, const at::Tensor& hidden,
                         const StageInputs& inputs) {
  const SentenceStagesOptions& options = model.options;
  const int64_t rank = options.takes_sentences() ? 2 : 3;
  const bool has_hidden = options.d_model() > 0;
  TORCH_CHECK_VALUE(has_hidden || !hidden.defined(),
                    "[SentenceStages] hidden must be undefined for stages that are given ids "
                    "alone. Got ",
                    hidden.sizes());
  TORCH_CHECK_VALUE(!has_hidden || (hidden.dim() == rank && hidden.size(-1) == options.d_model()),
                    "[SentenceStages] hidden must be ", rank == 2 ? "(B, " : "(B, L, ",
                    options.d_model(), "). Got ", hidden.sizes());
  StageFeatures features;
  if (has_hidden)
    features.of(rank == 2 ? sentence::Feature::Sentence : sentence::Feature::Tokens) = hidden;
  features.mask = inputs.mask;
  features.ids = inputs.ids;
  const auto& parts = model.children();
  std::size_t used = 0;
  for (std::size_t i = 0; i < options.stages().size(); ++i) {
    const auto& stage = options.stages()[i];
    const StageKind& kind = kind_of(stage);
    torch::nn::Module* const module = kind.make != nullptr ? parts[used++].get() : nullptr;
    kind.run(stage, {inputs, features, module, {i + 1, kind.name}, model.is_training()});
  }
  return features;
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
  check_result(options, sentence::Feature::Sentence, "forward_tokens");
  TORCH_CHECK_VALUE(!max_active_dims || *max_active_dims > 0,
                    "[SentenceStages] max_active_dims must be positive. Got ",
                    max_active_dims.value_or(0));
  TORCH_CHECK_VALUE(prompt_length >= 0, "[SentenceStages] prompt_length must not be negative. Got ",
                    prompt_length);
  return run_stages(*this, hidden,
                    {.mask = attention_mask,
                     .ids = input_ids,
                     .sizes = sizes_of(hidden),
                     .prompt_length = prompt_length,
                     .hidden_states = hidden_states,
                     .max_active_dims = max_active_dims})
      .sentence;
}

MultiVectors SentenceStagesImpl::forward_tokens(const torch::Tensor& hidden,
                                                const torch::Tensor& attention_mask,
                                                const torch::Tensor& scored, sentence::Task task,
                                                const torch::Tensor& input_ids,
                                                const std::vector<torch::Tensor>& hidden_states) {
  check_result(options, sentence::Feature::Tokens, "forward");
  StageFeatures features = run_stages(*this, hidden,
                                      {.mask = attention_mask,
                                       .ids = input_ids,
                                       .sizes = sizes_of(hidden),
                                       .prompt_length = 0,
                                       .hidden_states = hidden_states,
                                       .scored = scored,
                                       .task = task});
  if (!features.lengths.defined()) stages::take_rows(features, attention_mask);
  return {features.tokens, features.lengths};
}

}  // namespace posenc
