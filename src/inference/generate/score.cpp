#include "posenc/inference/score.h"

#include <torch/types.h>

#include <algorithm>

#include "inference/freeze/model.h"
#include "inference/generate/step_model.h"
#include "inference/generate/topk.h"
#include "inference/rows/frozen_call.h"
#include "posenc/inference/freeze.h"

namespace posenc {
namespace {

using Targets = std::vector<std::vector<int64_t>>;

void check_targets(const Targets& targets, const torch::Tensor& src,
                   const TransformerOptions& model) {
  check_sources("score", src, model);
  posenc::check_targets("score", targets, src.size(0), model, /*undecoded=*/1);
}

// `decode` returns the logits (B, L, V) of ids (B, L), and puts what they attend to, if it is
// wanted, into the tensor (B, L, S).
template <typename Decode>
std::vector<ScoredTarget> scores_of(const Targets& targets, torch::Device device,
                                    const Decode& decode) {
  const auto rows = static_cast<int64_t>(targets.size());
  size_t most = 1;
  for (const auto& target : targets) most = std::max(most, target.size());
  std::vector<ScoredTarget> found(targets.size());
  if (most == 1) return found;
  const auto length = static_cast<int64_t>(most) - 1;
  // What comes after a target's end has no influence on it, since the mask is causal.
  const auto given = torch::zeros({rows, length}, torch::kLong);
  const auto next = torch::zeros({rows, length}, torch::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    const auto& target = targets[row];
    std::copy(target.begin(), target.end() - 1, given.data_ptr<int64_t>() + row * length);
    std::copy(target.begin() + 1, target.end(), next.data_ptr<int64_t>() + row * length);
  }
  torch::Tensor attention;
  const torch::Tensor all = decode(given.to(device), attention);
  const auto logits = all.reshape({rows * length, all.size(2)});
  const auto sum = functional::log_sum_exp(logits.to(torch::kFloat));
  const auto of_next = logits.gather(1, next.to(device).view({-1, 1})).squeeze(1).to(torch::kFloat);
  const auto values = ((of_next - sum.largest) - sum.rest).cpu().contiguous();
  for (int64_t row = 0; row < rows; ++row) {
    const auto* const first = values.const_data_ptr<float>() + row * length;
    const auto count = static_cast<int64_t>(targets[row].size()) - 1;
    found[row].log_probabilities.assign(first, first + count);
    if (attention.defined())
      found[row].attention =
          attention[row].narrow(0, 0, count).to(torch::kCPU, torch::kFloat).clone();
  }
  return found;
}

std::vector<std::vector<double>> log_probabilities_of(std::vector<ScoredTarget> found) {
  std::vector<std::vector<double>> values;
  for (auto& target : found) values.push_back(std::move(target.log_probabilities));
  return values;
}

// How many tokens of each target are decoded: what is scored after them is padding.
std::vector<int64_t> decoded_tokens(const Targets& targets) {
  std::vector<int64_t> counts;
  for (const auto& target : targets) counts.push_back(static_cast<int64_t>(target.size()) - 1);
  return counts;
}

// A target that has only its first token attends to nothing.
std::vector<ScoredTarget> with_attention(std::vector<ScoredTarget> found,
                                         const torch::Tensor& memory) {
  for (auto& target : found)
    if (!target.attention.defined())
      target.attention = torch::empty({0, memory.size(1)}, torch::kFloat);
  return found;
}

}  // namespace

std::vector<std::vector<double>> next_log_probabilities(
    const Targets& texts, torch::Device device,
    const std::function<torch::Tensor(const torch::Tensor&)>& decode) {
  return log_probabilities_of(
      scores_of(texts, device,
                [&](const torch::Tensor& given, const torch::Tensor&) { return decode(given); }));
}

std::vector<std::vector<double>> score(TransformerImpl& model, const torch::Tensor& src,
                                       const AttentionMask& src_mask, const Targets& targets) {
  check_eval_mode("score", model);
  check_targets(targets, src, model.options);
  const torch::NoGradGuard no_grad;
  if (targets.empty()) return {};
  const auto memory = model.encode(src, src_mask);
  return next_log_probabilities(targets, memory.device(), [&](const torch::Tensor& given) {
    return model.decode(given, memory, AttentionMask::causal(), src_mask).contiguous();
  });
}

std::vector<std::vector<double>> score(const FrozenTransformer& model, const torch::Tensor& src,
                                       const AttentionMask& src_mask, const Targets& targets) {
  check_targets(targets, src, model.options());
  if (targets.empty()) return {};
  const auto held = inference::FrozenAccess::model(model);
  const inference::FrozenCall call(held->call);
  const auto memory = model.encode(src, src_mask);
  return next_log_probabilities(targets, torch::kCPU, [&](const torch::Tensor& given) {
    return inference::decode(*held, given, memory, AttentionMask::causal(), src_mask, nullptr,
                             decoded_tokens(targets));
  });
}

std::vector<ScoredTarget> score_with_attention(TransformerImpl& model, const torch::Tensor& src,
                                               const AttentionMask& src_mask,
                                               const Targets& targets) {
  check_eval_mode("score", model);
  check_targets(targets, src, model.options);
  const torch::NoGradGuard no_grad;
  if (targets.empty()) return {};
  const auto memory = model.encode(src, src_mask);
  const auto decode = [&](const torch::Tensor& given, torch::Tensor& attention) {
    auto cache = model.start(memory, given.size(1), src_mask);
    const auto hidden = model.decoder->step(model.tgt_embedding->forward(given), cache, &attention);
    return model.final_layer->forward(hidden).contiguous();
  };
  return with_attention(scores_of(targets, memory.device(), decode), memory);
}

std::vector<ScoredTarget> score_with_attention(const FrozenTransformer& model,
                                               const torch::Tensor& src,
                                               const AttentionMask& src_mask,
                                               const Targets& targets) {
  check_targets(targets, src, model.options());
  if (targets.empty()) return {};
  const auto held = inference::FrozenAccess::model(model);
  const inference::FrozenCall call(held->call);
  const auto memory = model.encode(src, src_mask);
  const auto decode = [&](const torch::Tensor& given, torch::Tensor& attention) {
    return inference::decode(*held, given, memory, AttentionMask::causal(), src_mask, &attention,
                             decoded_tokens(targets));
  };
  return with_attention(scores_of(targets, torch::kCPU, decode), memory);
}

}  // namespace posenc
