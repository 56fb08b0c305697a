#pragma once

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "posenc/positions/nn/token_embedding.h"

namespace posenc::testing {

constexpr int64_t kSmallVocab = 37, kSmallWidth = 12;

/// What a SmallModel has.
struct SmallModelKind {
  bool sparse = false;  ///< the embedding's gradient is sparse, if it is not tied
  bool tied = false;    ///< output is a second name of the embedding's weight
};

/// ids -> posenc's embedding -> tanh -> linear -> logits, with layers that only some steps use, a
/// frozen one, and buffers.
struct SmallModel : torch::nn::Module {
  explicit SmallModel(const SmallModelKind& kind)
      : tokens(
            register_module("tokens", TokenEmbedding(TokenEmbeddingOptions(kSmallVocab, kSmallWidth)
                                                         .scale(Scale::SqrtDim)
                                                         .sparse(kind.sparse)))),
        hidden(register_module("hidden", torch::nn::Linear(kSmallWidth, kSmallWidth))),
        sometimes(register_module("sometimes", torch::nn::Linear(kSmallWidth, kSmallWidth))),
        never(register_module("never", torch::nn::Linear(3, 2))),
        later(register_module("later", torch::nn::Linear(kSmallWidth, kSmallWidth))),
        output(register_parameter("output", kind.tied
                                                ? tokens->embedding->weight
                                                : 0.3 * torch::randn({kSmallVocab, kSmallWidth}))) {
    for (auto& parameter : later->parameters()) parameter.set_requires_grad(false);
    register_buffer("mean", torch::randn({5}));
    register_buffer("count", torch::randint(100, {2}, torch::kLong));
    register_buffer("turned", torch::randn({2, 3}).t());
  }

  /// The sum over all targets; `extra`: with the layer that only some steps use.
  torch::Tensor loss_sum(const torch::Tensor& ids, const torch::Tensor& targets, bool extra) {
    torch::Tensor x = torch::tanh(later(hidden(torch::tanh(tokens(ids)))));
    if (extra) x = x + sometimes(x);
    const auto logits = torch::matmul(x, output.t()).flatten(0, -2);
    return torch::nn::functional::cross_entropy(logits, targets.flatten(),
                                                torch::nn::functional::CrossEntropyFuncOptions()
                                                    .reduction(torch::kSum)
                                                    .label_smoothing(0.1));
  }

  TokenEmbedding tokens;
  torch::nn::Linear hidden, sometimes, never, later;
  torch::Tensor output;
};

/// A model as made after manual_seed(seed).
inline std::shared_ptr<SmallModel> small_model(const SmallModelKind& kind, uint64_t seed) {
  torch::manual_seed(seed);
  return std::make_shared<SmallModel>(kind);
}

/// Moves each parameter once by its gradient, dense or sparse.
inline void descend(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  std::vector<const void*> seen;
  for (auto& parameter : module.parameters()) {
    const void* const key = parameter.unsafeGetTensorImpl();
    if (!parameter.grad().defined() || std::find(seen.begin(), seen.end(), key) != seen.end())
      continue;
    seen.push_back(key);
    parameter.add_(parameter.grad(), -0.5);
  }
}

/// Copies of the gradients by name, sparse ones as dense tensors; undefined where there is none.
inline std::vector<std::pair<std::string, torch::Tensor>> gradients(torch::nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> copies;
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& gradient = item.value().grad();
    copies.emplace_back(item.key(), gradient.defined() ? gradient.to_dense().clone() : gradient);
  }
  return copies;
}

}  // namespace posenc::testing
