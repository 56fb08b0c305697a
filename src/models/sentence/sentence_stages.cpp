#include "posenc/models/sentence_stages.h"

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <ostream>

#include "core/print_fields.h"
#include "models/sentence/stage_module.h"
#include "posenc/models/functional/pooling.h"

namespace posenc {
namespace {

using sentence::Feature;
using sentence::PoolingMode;

constexpr double kLeastCount = 1e-9;  // that a sum is divided by

// What a batch comes with.
struct StageInputs {
  at::Tensor mask, ids;
  at::IntArrayRef sizes;
  int64_t prompt_length;
  const std::vector<at::Tensor>& hidden_states;
};

// The features of a batch on their way through the stages.
struct Features {
  at::Tensor tokens, sentence;
  at::Tensor mask, ids;    // of the tokens
  at::Tensor weights_sum;  // of WordWeights, (B)

  at::Tensor& of(Feature feature) { return feature == Feature::Tokens ? tokens : sentence; }
};

// The tokens that a Pooling pools.
struct PooledTokens {
  at::Tensor mask;         // undefined: all
  at::Tensor first;        // of each sequence, from which weights count; undefined: the first token
  at::Tensor weights_sum;  // what the sums are divided by; undefined: the number of tokens
};

PooledTokens without_prompt(const Features& features, int64_t prompt_length) {
  const at::Tensor is_token = features.mask.defined()
                                  ? features.mask.ne(0)
                                  : at::ones(features.tokens.sizes().slice(0, 2), at::kBool);
  return {is_token & is_token.cumsum(1).gt(prompt_length), is_token.to(at::kInt).argmax(1),
          features.weights_sum};
}

// A mean of words that have weights: their sum over that of the weights, prompt included.
at::Tensor weighted_by(PoolingMode mode, const at::Tensor& tokens, const PooledTokens& pooled) {
  at::Tensor counted = tokens;
  if (pooled.mask.defined()) counted = at::where(pooled.mask.ne(0).unsqueeze(-1), tokens, 0);
  if (mode == PoolingMode::WeightedMean) {
    at::Tensor positions = at::arange(1, tokens.size(1) + 1, tokens.options()).unsqueeze(0);
    const at::Tensor first = pooled.first.defined() || !pooled.mask.defined()
                                 ? pooled.first
                                 : pooled.mask.ne(0).to(at::kInt).argmax(1);
    if (first.defined()) positions = positions - first.unsqueeze(1);
    counted = counted * positions.unsqueeze(-1);
  }
  const at::Tensor count = pooled.weights_sum.clamp_min(kLeastCount).unsqueeze(1);
  return counted.sum(1) / (mode == PoolingMode::MeanSqrtLength ? count.sqrt() : count);
}

at::Tensor pooled_by(PoolingMode mode, const at::Tensor& tokens, const PooledTokens& pooled) {
  using namespace functional;  // the poolings
  const bool is_mean = mode == PoolingMode::Mean || mode == PoolingMode::MeanSqrtLength ||
                       mode == PoolingMode::WeightedMean;
  if (is_mean && pooled.weights_sum.defined()) return weighted_by(mode, tokens, pooled);
  switch (mode) {
    case PoolingMode::CLS: return first_token_pool(tokens, pooled.mask);
    case PoolingMode::Max: return max_pool(tokens, pooled.mask);
    case PoolingMode::Mean: return mean_pool(tokens, pooled.mask);
    case PoolingMode::MeanSqrtLength: return mean_sqrt_length_pool(tokens, pooled.mask);
    case PoolingMode::WeightedMean: return weighted_mean_pool(tokens, pooled.mask, pooled.first);
    case PoolingMode::LastToken: break;
  }
  return last_token_pool(tokens, pooled.mask);
}

struct RunStage {
  const StageInputs& inputs;
  Features& features;
  StageModule* module;  // null for a stage without weights
  std::size_t number;
  bool is_training;

  void operator()(const sentence::Pooling& stage) const {
    const bool has_prompt = inputs.prompt_length > 0 && !stage.include_prompt;
    const PooledTokens pooled = has_prompt ? without_prompt(features, inputs.prompt_length)
                                           : PooledTokens{features.mask, {}, features.weights_sum};
    std::vector<at::Tensor> parts;
    for (const PoolingMode mode : stage.modes) {
      parts.push_back(pooled_by(mode, features.tokens, pooled));
    }
    features.sentence = parts.size() == 1 ? parts.front() : at::cat(parts, -1);
  }
  void operator()(const sentence::Dense& stage) const {
    const at::Tensor& x = features.of(stage.input);
    at::Tensor y = functional::activate(module->linear->forward(x), stage.activation);
    if (stage.use_residual) {
      y = y + (module->residual ? module->residual->forward(x) : x);
    }
    features.of(stage.output) = y;
  }
  void operator()(const sentence::Normalize& stage) const {
    features.of(stage.output) = functional::l2_normalize(features.of(stage.input));
  }
  void operator()(const sentence::LayerNorm&) const {
    features.sentence = module->norm->forward(features.sentence);
  }
  void operator()(const sentence::Dropout& stage) const {
    if (is_training) features.sentence = at::dropout(features.sentence, stage.p, true);
  }
  void operator()(const sentence::WeightedLayerPooling& stage) const {
    const auto count = static_cast<int64_t>(inputs.hidden_states.size());
    TORCH_CHECK_VALUE(count == stage.num_hidden_layers + 1, "[SentenceStages] stage ", number,
                      ", WeightedLayerPooling: hidden_states must be the embeddings and the output "
                      "of each of its num_hidden_layers, ",
                      stage.num_hidden_layers, ". Got ", count, " hidden states");
    const at::Tensor weights = module->layer_weights;
    at::Tensor sum;
    for (int64_t i = stage.layer_start; i < count; ++i) {
      const at::Tensor& state = inputs.hidden_states[static_cast<std::size_t>(i)];
      TORCH_CHECK_VALUE(state.sizes() == inputs.sizes, "[SentenceStages] each of hidden_states ",
                        "must be of the size of hidden, ", inputs.sizes, ". Got ", state.sizes());
      const at::Tensor part = state * weights[i - stage.layer_start];
      sum = sum.defined() ? sum + part : part;
    }
    features.tokens = sum / weights.sum();
    features.mask = inputs.mask;
    features.ids = inputs.ids;
  }
  void operator()(const sentence::WordWeights& stage) const {
    const at::Tensor& ids = features.ids;
    TORCH_CHECK_VALUE(ids.defined() && ids.sizes() == features.tokens.sizes().slice(0, 2),
                      "[SentenceStages] stage ", number,
                      ", WordWeights: input_ids must be those of the tokens, ",
                      features.tokens.sizes().slice(0, 2), ". Got ",
                      ids.defined() ? c10::str(ids.sizes()) : "an undefined tensor");
    const bool are_known = ids.numel() == 0 || (ids.min().item<int64_t>() >= 0 &&
                                                ids.max().item<int64_t>() < stage.vocab_size);
    TORCH_CHECK_VALUE(are_known, "[SentenceStages] stage ", number,
                      ", WordWeights: input_ids must lie in [0, ", stage.vocab_size, "). Got ",
                      ids.numel() == 0 ? 0 : ids.max().item<int64_t>());
    at::Tensor weights = module->word_weights.squeeze(1).index({ids});
    if (features.mask.defined()) weights = weights.masked_fill(features.mask.eq(0), 0.0);
    features.tokens = features.tokens * weights.unsqueeze(-1);
    features.weights_sum = weights.sum(1);
  }
  void operator()(const sentence::CNN&) const {
    const ConvolvedTokens out =
        convolved(*module->convs, {features.tokens, features.mask, features.ids}, number);
    features.tokens = out.tokens;
    features.mask = out.mask;
    features.ids = out.ids;
  }
};

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
    if (!StageModule::is_needed(stage)) continue;
    register_module(std::to_string(i + 1), std::make_shared<StageModule>(stage));
  }
}

void SentenceStagesImpl::reset_parameters() {
  for (const auto& stage : children()) stage->as<StageModule>()->reset_parameters();
}

void SentenceStagesImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "SentenceStages", options, SentenceStagesOptions(-1));
}

int64_t SentenceStagesImpl::width() const { return widths_after(options).sentence; }

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
                                          const std::vector<torch::Tensor>& hidden_states) {
  const int64_t rank = options.takes_sentences() ? 2 : 3;
  TORCH_CHECK_VALUE(hidden.dim() == rank && hidden.size(-1) == options.d_model(),
                    "[SentenceStages] hidden must be ", rank == 2 ? "(B, " : "(B, L, ",
                    options.d_model(), "). Got ", hidden.sizes());
  TORCH_CHECK_VALUE(prompt_length >= 0, "[SentenceStages] prompt_length must not be negative. Got ",
                    prompt_length);
  const StageInputs inputs = {attention_mask, input_ids, hidden.sizes(), prompt_length,
                              hidden_states};
  Features features;
  features.of(rank == 2 ? Feature::Sentence : Feature::Tokens) = hidden;
  features.mask = attention_mask;
  features.ids = input_ids;
  const auto& parts = children();
  std::size_t used = 0;
  for (std::size_t i = 0; i < options.stages().size(); ++i) {
    const auto& stage = options.stages()[i];
    auto* module = StageModule::is_needed(stage) ? parts[used++]->as<StageModule>() : nullptr;
    std::visit(RunStage{inputs, features, module, i + 1, is_training()}, stage);
  }
  return features.sentence;
}

}  // namespace posenc
