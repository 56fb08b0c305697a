#pragma once

#include <ATen/Functions.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "posenc/positions/nn/token_and_position_embedding.h"

namespace posenc::benchmarks {

constexpr int64_t kVocabulary = 32000;
constexpr int64_t kLength = 512;  // more tokens make a batch
constexpr double kDropout = 0.1;

/// Our module, and the composition of LibTorch modules with the same weights. peers.py creates them
/// from the same seed.
struct EmbedModels {
  EmbedModels(int64_t dim, at::ScalarType dtype, bool sparse)
      : dropout(kDropout), scale(std::sqrt(static_cast<double>(dim))) {
    torch::manual_seed(1);
    ours = TokenAndPositionEmbedding(TokenAndPositionEmbeddingOptions(kVocabulary, dim, kLength)
                                         .dropout(kDropout)
                                         .sparse(sparse));
    ours->to(dtype);
    theirs = torch::nn::Embedding::from_pretrained(
        ours->token_embedding->weight.detach().clone(),
        torch::nn::EmbeddingFromPretrainedOptions().freeze(false).sparse(sparse));
    pe = ours->position_encoding->pe;
  }
  void train(bool on) {
    ours->train(on);
    theirs->train(on);
    dropout->train(on);
  }
  at::Tensor composed(const at::Tensor& ids) {
    return dropout->forward(theirs->forward(ids) * scale + pe.slice(1, 0, ids.size(1)));
  }

  TokenAndPositionEmbedding ours{nullptr};
  torch::nn::Embedding theirs{nullptr};
  torch::nn::Dropout dropout;
  double scale;
  at::Tensor pe;
};

/// Created once, because drawing the weights takes longer than most measurements.
inline EmbedModels& embed_models(int64_t dim, at::ScalarType dtype, bool sparse = false) {
  static std::map<std::tuple<int64_t, at::ScalarType, bool>, EmbedModels> made;
  const auto key = std::make_tuple(dim, dtype, sparse);
  const auto found = made.find(key);
  return found != made.end() ? found->second
                             : made.try_emplace(key, dim, dtype, sparse).first->second;
}

inline at::Tensor embed_ids(int64_t tokens) {
  torch::manual_seed(2);
  return at::randint(
      kVocabulary, {std::max<int64_t>(1, tokens / kLength), std::min(tokens, kLength)}, at::kLong);
}

}  // namespace posenc::benchmarks
