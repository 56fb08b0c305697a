#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/scale.h"

namespace posenc {

struct TokenEmbeddingOptions {
  TokenEmbeddingOptions(int64_t vocab_size, int64_t d_model)
      : vocab_size_(vocab_size), d_model_(d_model) {}

  TORCH_ARG(int64_t, vocab_size);
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(Scale, scale) = Scale::None;
  /// This row starts as zeros and gets no gradient; negative counts from the end.
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// The weight is not trained (requires_grad false).
  TORCH_ARG(bool, freeze) = false;
  /// The weight's gradient is sparse, as nn.Embedding's; rows come once each, in order.
  TORCH_ARG(bool, sparse) = false;
};

/// A learned vector for each token: embedding.weight[ids] * scale.
///
/// ids: any shape and integer type, in [0, vocab_size)  ->  (..., d_model).
/// Key: `embedding.weight` (vocab_size, d_model), N(0, 1) from torch's generator as nn.Embedding.
/// Scale::SqrtDim brings those weights to variance d_model. Errors: functional::token_embedding().
/// Source: notebook 00 `TokenEmbedding`, notebook 03 `TransformerEmbedding` (Scale::SqrtDim).
class TokenEmbeddingImpl : public Cloneable<TokenEmbeddingImpl> {
 public:
  TokenEmbeddingImpl(int64_t vocab_size, int64_t d_model)
      : TokenEmbeddingImpl(TokenEmbeddingOptions(vocab_size, d_model)) {}
  explicit TokenEmbeddingImpl(TokenEmbeddingOptions options_);
  /// `weight` becomes the parameter itself; see TokenEmbedding::from_pretrained().
  TokenEmbeddingImpl(TokenEmbeddingOptions options_, const torch::Tensor& weight);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& ids);

  TokenEmbeddingOptions options;
  torch::nn::Embedding embedding{nullptr};

 private:
  void build(const torch::Tensor& weight);
};

class TokenEmbedding : public torch::nn::ModuleHolder<TokenEmbeddingImpl> {
 public:
  using torch::nn::ModuleHolder<TokenEmbeddingImpl>::ModuleHolder;

  /// Takes `weight` (vocab_size, d_model) itself, not a copy; frozen unless told otherwise.
  static TokenEmbedding from_pretrained(const torch::Tensor& weight, bool freeze = true,
                                        const Scale& scale = Scale::None,
                                        std::optional<int64_t> padding_idx = std::nullopt);
};

}  // namespace posenc
