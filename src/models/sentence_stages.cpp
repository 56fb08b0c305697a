#include "posenc/models/sentence_stages.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/ones.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <ostream>

#include "core/check.h"
#include "nn/weights.h"
#include "posenc/functional/pooling.h"
#include "posenc/nn/transformer/layer_norm.h"

namespace posenc {
namespace {

using sentence::Feature;
using sentence::PoolingMode;

constexpr double kStageEps = 1e-5;  // torch.nn.LayerNorm's

// One stage: its width and its modules.
struct StageWidths {
  int64_t tokens = 0, sentence = 0;  // zero: there are none

  int64_t& of(Feature feature) { return feature == Feature::Tokens ? tokens : sentence; }
};

void check_there(int64_t width, std::size_t stage, const char* kind, Feature input) {
  TORCH_CHECK_VALUE(width > 0, "[SentenceStages] stage ", stage, ", ", kind, ", must follow one ",
                    "that makes its input, ",
                    input == Feature::Tokens ? "token_embeddings" : "sentence_embedding");
}

// Follows the widths through a stage, and checks that it can be applied.
struct FollowWidths {
  StageWidths& widths;
  std::size_t number;  // of the stage

  void operator()(const sentence::Pooling& stage) const {
    check_there(widths.tokens, number, "Pooling", Feature::Tokens);
    TORCH_CHECK_VALUE(!stage.modes.empty(), "[SentenceStages] stage ", number,
                      ", Pooling, must have a mode, which it has not");
    widths.sentence = static_cast<int64_t>(stage.modes.size()) * widths.tokens;
  }
  void operator()(const sentence::Dense& stage) const {
    check_positive("SentenceStages", "out_features", stage.out_features);
    check_width(widths.of(stage.input), "Dense", "in_features", stage.in_features, stage.input);
    widths.of(stage.output) = stage.out_features;
  }
  void operator()(const sentence::Normalize& stage) const {
    check_there(widths.of(stage.input), number, "Normalize", stage.input);
    widths.of(stage.output) = widths.of(stage.input);
  }
  void operator()(const sentence::LayerNorm& stage) const {
    check_width(widths.sentence, "LayerNorm", "dimension", stage.dimension, Feature::Sentence);
  }
  void operator()(const sentence::Dropout& stage) const {
    check_there(widths.sentence, number, "Dropout", Feature::Sentence);
    TORCH_CHECK_VALUE(stage.p >= 0.0 && stage.p <= 1.0, "[SentenceStages] stage ", number,
                      ", Dropout, must have a probability. Got ", stage.p);
  }

 private:
  void check_width(int64_t width, const char* kind, const char* what, int64_t got,
                   Feature input) const {
    check_there(width, number, kind, input);
    TORCH_CHECK_VALUE(width == got, "[SentenceStages] stage ", number, ", ", kind, ": ", what,
                      " must be the width of what it gets, ", width, ". Got ", got);
  }
};

StageWidths widths_after(const SentenceStagesOptions& options) {
  check_positive("SentenceStages", "d_model", options.d_model());
  StageWidths widths;
  widths.of(options.takes_sentences() ? Feature::Sentence : Feature::Tokens) = options.d_model();
  std::size_t number = 0;
  for (const auto& stage : options.stages()) std::visit(FollowWidths{widths, ++number}, stage);
  check_there(widths.sentence, number + 1, "the end", Feature::Sentence);
  return widths;
}

// The weights of a stage, by the names that they have in a file.
class StageModule : public Cloneable<StageModule> {
 public:
  explicit StageModule(sentence::Stage stage) : stage_(std::move(stage)) { StageModule::reset(); }

  static bool is_needed(const sentence::Stage& stage) {
    return std::holds_alternative<sentence::Dense>(stage) ||
           std::holds_alternative<sentence::LayerNorm>(stage);
  }

  void reset() override {
    if (const auto* dense = std::get_if<sentence::Dense>(&stage_)) {
      const torch::nn::LinearOptions sizes(dense->in_features, dense->out_features);
      linear =
          register_module("linear", make_linear(torch::nn::LinearOptions(sizes).bias(dense->bias)));
      if (!dense->use_residual || dense->in_features == dense->out_features) return;
      residual =
          register_module("residual", make_linear(torch::nn::LinearOptions(sizes).bias(false)));
    } else if (const auto* layer = std::get_if<sentence::LayerNorm>(&stage_)) {
      norm = register_module("norm", LayerNorm(LayerNormOptions(layer->dimension).eps(kStageEps)));
    }
  }

  torch::nn::Linear linear{nullptr}, residual{nullptr};
  LayerNorm norm{nullptr};

 private:
  sentence::Stage stage_;
};

// The features of a batch on their way through the stages.
struct Features {
  at::Tensor tokens, sentence;
  at::Tensor pooled_mask;  // of the tokens that are pooled; undefined: all
  at::Tensor first;        // of each sequence, from which weights count; undefined: the first token
  at::Tensor whole_mask;   // with the prompt

  at::Tensor& of(Feature feature) { return feature == Feature::Tokens ? tokens : sentence; }
};

at::Tensor pooled_by(PoolingMode mode, const at::Tensor& tokens, const at::Tensor& mask,
                     const at::Tensor& first) {
  using namespace functional;  // the poolings
  switch (mode) {
    case PoolingMode::CLS: return first_token_pool(tokens, mask);
    case PoolingMode::Max: return max_pool(tokens, mask);
    case PoolingMode::Mean: return mean_pool(tokens, mask);
    case PoolingMode::MeanSqrtLength: return mean_sqrt_length_pool(tokens, mask);
    case PoolingMode::WeightedMean: return weighted_mean_pool(tokens, mask, first);
    case PoolingMode::LastToken: break;
  }
  return last_token_pool(tokens, mask);
}

struct RunStage {
  Features& features;
  StageModule* module;  // null for a stage without weights
  bool is_training;

  void operator()(const sentence::Pooling& stage) const {
    const at::Tensor& mask = stage.include_prompt ? features.whole_mask : features.pooled_mask;
    const at::Tensor first = stage.include_prompt ? at::Tensor() : features.first;
    std::vector<at::Tensor> parts;
    for (const PoolingMode mode : stage.modes) {
      parts.push_back(pooled_by(mode, features.tokens, mask, first));
    }
    features.sentence = parts.size() == 1 ? parts.front() : at::cat(parts, -1);
  }
  void operator()(const sentence::Dense& stage) const {
    const at::Tensor& x = features.of(stage.input);
    at::Tensor y = functional::elementwise(module->linear->forward(x), stage.activation);
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
};

template <typename Condition>
bool any_pooling(const SentenceStagesOptions& options, const Condition& condition) {
  for (const auto& stage : options.stages()) {
    const auto* pooling = std::get_if<sentence::Pooling>(&stage);
    if (pooling != nullptr && condition(*pooling)) return true;
  }
  return false;
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
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* linear = module->as<torch::nn::LinearImpl>()) linear->reset_parameters();
    if (auto* norm = module->as<LayerNormImpl>()) norm->reset_parameters();
  }
}

void SentenceStagesImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::SentenceStages(d_model=" << options.d_model()
         << ", stages=" << options.stages().size() << ", width=" << width() << ")";
}

int64_t SentenceStagesImpl::width() const { return widths_after(options).sentence; }

bool SentenceStagesImpl::excludes_prompt() const {
  return any_pooling(options, [](const auto& pooling) { return !pooling.include_prompt; });
}

bool SentenceStagesImpl::defines_empty() const {
  return !any_pooling(options, [](const sentence::Pooling& pooling) {
    return std::any_of(pooling.modes.begin(), pooling.modes.end(), [](PoolingMode mode) {
      return mode == PoolingMode::CLS || mode == PoolingMode::Max;
    });
  });
}

torch::Tensor SentenceStagesImpl::forward(const torch::Tensor& hidden,
                                          const torch::Tensor& attention_mask,
                                          int64_t prompt_length) {
  const int64_t rank = options.takes_sentences() ? 2 : 3;
  TORCH_CHECK_VALUE(hidden.dim() == rank && hidden.size(-1) == options.d_model(),
                    "[SentenceStages] hidden must be ", rank == 2 ? "(B, " : "(B, L, ",
                    options.d_model(), "). Got ", hidden.sizes());
  TORCH_CHECK_VALUE(prompt_length >= 0, "[SentenceStages] prompt_length must not be negative. Got ",
                    prompt_length);
  Features features;
  features.of(rank == 2 ? Feature::Sentence : Feature::Tokens) = hidden;
  features.whole_mask = features.pooled_mask = attention_mask;
  if (prompt_length > 0 && rank == 3) {
    const at::Tensor is_token = attention_mask.defined()
                                    ? attention_mask.ne(0)
                                    : at::ones(hidden.sizes().slice(0, 2), at::kBool);
    features.pooled_mask = is_token & is_token.cumsum(1).gt(prompt_length);
    features.first = is_token.to(at::kInt).argmax(1);
  }
  const auto parts = named_children();
  for (std::size_t i = 0; i < options.stages().size(); ++i) {
    const auto* module = parts.find(std::to_string(i + 1));
    std::visit(RunStage{features, module ? (*module)->as<StageModule>() : nullptr, is_training()},
               options.stages()[i]);
  }
  return features.sentence;
}

}  // namespace posenc
