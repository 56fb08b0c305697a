#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/last_output.h"
#include "posenc/core/scale.h"
#include "posenc/nn/positional_encoding.h"

namespace posenc {

struct TokenAndPositionEmbeddingOptions {
  TokenAndPositionEmbeddingOptions(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : vocab_size_(vocab_size), d_model_(d_model), position_(d_model, max_len) {}

  TORCH_ARG(int64_t, vocab_size);
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(Scale, scale) = Scale::SqrtDim;
  /// This row of the token table starts as zeros and gets no gradient.
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// Probability with which an element of the sum is zeroed in training, in [0, 1).
  TORCH_ARG(double, dropout) = 0.1;
  /// max_len, batch_first, grow and sinusoid of the position encoding.
  TORCH_ARG(PositionalEncodingOptions, position);
  /// The weight's gradient is sparse, as nn.Embedding's; rows come once each, in order.
  TORCH_ARG(bool, sparse) = false;
  /// A forward that records no gradient writes into the memory of the last output when nobody holds
  /// that one any more.
  TORCH_ARG(bool, reuse_output) = false;
};

/// Scale, position, dropout, in that order:
/// dropout(token_embedding.weight[ids] * sqrt(d_model) + position_encoding.pe).
///
/// ids: (B, L) or (L); (L, B) with batch_first(false)  ->  (..., d_model).
/// Keys: `token_embedding.weight`, `position_encoding.pe`.
/// Errors: functional::embed(). Source: notebook 03 `TokenAndPositionEmbedding`.
class TokenAndPositionEmbeddingImpl : public Cloneable<TokenAndPositionEmbeddingImpl> {
 public:
  TokenAndPositionEmbeddingImpl(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : TokenAndPositionEmbeddingImpl(
            TokenAndPositionEmbeddingOptions(vocab_size, d_model, max_len)) {}
  explicit TokenAndPositionEmbeddingImpl(TokenAndPositionEmbeddingOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// `offset` and `position_ids` as in PositionalEncoding.
  torch::Tensor forward(const torch::Tensor& ids, int64_t offset = 0,
                        const torch::Tensor& position_ids = {});

  /// From now on the token vectors are those of `embedding`, which another module registers; the
  /// own ones are dropped. A clone reads the same embedding: whoever clones both shares them again.
  void share_tokens(const torch::nn::Embedding& embedding);

  TokenAndPositionEmbeddingOptions options;
  torch::nn::Embedding token_embedding{nullptr};
  PositionalEncoding position_encoding{nullptr};
  torch::nn::Dropout dropout{nullptr};

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  LastOutput last_output_;
  bool shares_tokens_ = false;
};

TORCH_MODULE(TokenAndPositionEmbedding);

}  // namespace posenc
