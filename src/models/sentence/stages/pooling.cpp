#include "models/sentence/pooling.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "core/named.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/models/functional/pooling.h"

namespace posenc {
namespace {

using sentence::PoolingMode;

constexpr double kLeastCount = 1e-9;  // that a sum is divided by

struct PoolingRow {
  const char* name;  // in a list of modes
  const char* flag;  // after pooling_mode_
  PoolingMode mode;
};

// In the order in which flags are concatenated, whatever theirs is.
constexpr PoolingRow kPoolings[] = {
    {"cls", "cls_token", PoolingMode::CLS},
    {"max", "max_tokens", PoolingMode::Max},
    {"mean", "mean_tokens", PoolingMode::Mean},
    {"mean_sqrt_len_tokens", "mean_sqrt_len_tokens", PoolingMode::MeanSqrtLength},
    {"weightedmean", "weightedmean_tokens", PoolingMode::WeightedMean},
    {"lasttoken", "lasttoken", PoolingMode::LastToken},
};

constexpr const char* kMode = "pooling_mode";

PoolingMode mode_of(const Settings& config, const nlohmann::json& name) {
  const auto* row =
      name.is_string() ? detail::find_named(kPoolings, name.get<std::string>()) : nullptr;
  if (row == nullptr) {
    config.refuse(kMode,
                  "must be cls, max, mean, mean_sqrt_len_tokens, weightedmean or lasttoken, or a "
                  "list of them");
  }
  return row->mode;
}

const PoolingRow& row_of(PoolingMode mode) {
  return *std::find_if(std::begin(kPoolings), std::end(kPoolings),
                       [&](const PoolingRow& row) { return row.mode == mode; });
}

// The tokens that a Pooling pools.
struct PooledTokens {
  at::Tensor mask;         // undefined: all
  at::Tensor first;        // of each sequence, from which weights count; undefined: the first token
  at::Tensor weights_sum;  // what the sums are divided by; undefined: the number of tokens
};

PooledTokens without_prompt(const StageFeatures& features, int64_t prompt_length) {
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

sentence::Stage read_pooling(const Settings& config) {
  return sentence::Pooling{pooling_modes(config), config.flag("include_prompt", true)};
}

void follow_pooling(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  const auto& stage = std::get<sentence::Pooling>(any);
  widths.check_there(sentence::Feature::Tokens, place);
  TORCH_CHECK_VALUE(!stage.modes.empty(), place, ", must have a mode, which it has not");
  widths.sentence = static_cast<int64_t>(stage.modes.size()) * widths.tokens;
}

void run_pooling(const sentence::Stage& any, const StageRun& run) {
  const auto& stage = std::get<sentence::Pooling>(any);
  StageFeatures& features = run.features;
  const bool has_prompt = run.inputs.prompt_length > 0 && !stage.include_prompt;
  const PooledTokens pooled = has_prompt ? without_prompt(features, run.inputs.prompt_length)
                                         : PooledTokens{features.mask, {}, features.weights_sum};
  std::vector<at::Tensor> parts;
  for (const PoolingMode mode : stage.modes)
    parts.push_back(pooled_by(mode, features.tokens, pooled));
  features.sentence = parts.size() == 1 ? parts.front() : at::cat(parts, -1);
}

}  // namespace

const StageKind stages::kPooling = {
    .name = "Pooling", .read = read_pooling, .follow = follow_pooling, .run = run_pooling};

std::vector<PoolingMode> pooling_modes(const Settings& config) {
  std::vector<PoolingMode> modes;
  if (config.has(kMode)) {
    const nlohmann::json& given = config.value(kMode);
    for (const auto& name : given.is_array() ? given : nlohmann::json::array({given})) {
      modes.push_back(mode_of(config, name));
    }
    if (modes.empty()) config.refuse(kMode, "must have a mode");
    return modes;
  }
  for (const PoolingRow& row : kPoolings) {
    if (config.flag(std::string("pooling_mode_") + row.flag, false)) modes.push_back(row.mode);
  }
  if (modes.empty()) modes.push_back(PoolingMode::Mean);
  return modes;
}

std::string pooling_name(PoolingMode mode) { return row_of(mode).flag; }

nlohmann::json pooling_settings(const sentence::Pooling& stage, int64_t width) {
  return {{"embedding_dimension", width},
          {"include_prompt", stage.include_prompt},
          {"pooling_mode", row_of(stage.modes.front()).name}};
}

}  // namespace posenc
