#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/last_output.h"
#include "posenc/nn/positional_encoding.h"
#include "posenc/nn/token_embedding.h"

namespace posenc {

struct InputEmbeddingOptions {
  InputEmbeddingOptions(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : token_(vocab_size, d_model), position_(d_model, max_len) {}

  TORCH_ARG(TokenEmbeddingOptions, token);
  TORCH_ARG(PositionalEncodingOptions, position);
  /// As in TokenAndPositionEmbeddingOptions.
  TORCH_ARG(bool, reuse_output) = false;
};

/// Tokens plus positions, without scale and dropout unless `token` and `position` ask for them:
/// dropout(token_embedding.embedding.weight[ids] * scale + pos_encoding.pe).
///
/// ids: (B, L) or (L); (L, B) with batch_first(false)  ->  (..., d_model).
/// Keys: `token_embedding.embedding.weight`, `pos_encoding.pe`.
/// Errors: those of its two parts, TokenEmbedding and PositionalEncoding.
/// Source: notebook 00 `InputEmbedding`.
class InputEmbeddingImpl : public Cloneable<InputEmbeddingImpl> {
 public:
  InputEmbeddingImpl(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : InputEmbeddingImpl(InputEmbeddingOptions(vocab_size, d_model, max_len)) {}
  explicit InputEmbeddingImpl(InputEmbeddingOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// `offset` and `position_ids` as in PositionalEncoding.
  torch::Tensor forward(const torch::Tensor& ids, int64_t offset = 0,
                        const torch::Tensor& position_ids = {});

  InputEmbeddingOptions options;
  TokenEmbedding token_embedding{nullptr};
  PositionalEncoding pos_encoding{nullptr};

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  LastOutput last_output_;
};

TORCH_MODULE(InputEmbedding);

}  // namespace posenc
