#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/positions/nn/embedding_options.h"

namespace posenc POSENC_EXPORT {

/// Options of TokenEmbedding.
struct TokenEmbeddingOptions : TokenOptions<TokenEmbeddingOptions> {
  using TokenOptions::TokenOptions;

  /// Excludes the weight from training (requires_grad false).
  TORCH_ARG(bool, freeze) = false;

  POSENC_FIELDS(TokenEmbeddingOptions, vocab_size_, d_model_, scale_, embedding_init_, padding_idx_,
                sparse_, freeze_);
};

/// A learned vector for each token, by default without a scale: embedding.weight[ids] * scale. Set
/// Scale::SqrtDim for a Python class that multiplies by sqrt(d_model).
///
/// ids: any shape and integer type, in [0, vocab_size)  ->  (..., d_model).
///
/// Weights are initialised like nn.Embedding's, N(0, 1) from torch's generator. With Scale::SqrtDim
/// that gives embeddings of variance d_model: train these with EmbeddingInit::InverseSqrtDim.
///
/// The gradient of a row is the sum over its ids, bit for bit as in PyTorch: on the CPU the sum of
/// a weight in half precision is rounded to its dtype after each term.
///
/// ```cpp
/// posenc::TokenEmbedding embedding(posenc::TokenEmbeddingOptions(100, 8).padding_idx(0));
/// torch::Tensor ids = torch::tensor({{5, 6, 7, 8}, {9, 5, 0, 0}});
/// torch::Tensor x = embedding->forward(ids);  // (B, L, 8)
/// ```
///
/// Keys: `embedding.weight` (vocab_size, d_model).
///
/// Errors: those of functional::token_embedding().
///
/// Source: the reference classes `TokenEmbedding` and `TransformerEmbedding` (Scale::SqrtDim) in
/// notebooks_ref.
class TokenEmbeddingImpl : public Cloneable<TokenEmbeddingImpl> {
 public:
  /// A module with the default options.
  TokenEmbeddingImpl(int64_t vocab_size, int64_t d_model)
      : TokenEmbeddingImpl(TokenEmbeddingOptions(vocab_size, d_model)) {}
  /// A module with the given options.
  explicit TokenEmbeddingImpl(TokenEmbeddingOptions options_);
  /// A module with `weight` as its parameter; see TokenEmbedding::from_pretrained().
  TokenEmbeddingImpl(TokenEmbeddingOptions options_, const torch::Tensor& weight);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the vectors of `ids`.
  torch::Tensor forward(const torch::Tensor& ids);

  TokenEmbeddingOptions options;            ///< the options given to the constructor
  torch::nn::Embedding embedding{nullptr};  ///< the table

 private:
  void build(const torch::Tensor& weight);
};

/// A shared handle to a TokenEmbeddingImpl: copies share the module, and `->` reaches its members.
class TokenEmbedding : public torch::nn::ModuleHolder<TokenEmbeddingImpl> {
 public:
  using torch::nn::ModuleHolder<TokenEmbeddingImpl>::ModuleHolder;

  /// Makes a module whose parameter is `weight` (vocab_size, d_model) itself, not a copy. It is
  /// frozen by default.
  static TokenEmbedding from_pretrained(const torch::Tensor& weight, bool freeze = true,
                                        const Scale& scale = Scale::None,
                                        std::optional<int64_t> padding_idx = std::nullopt);
};

}  // namespace posenc
