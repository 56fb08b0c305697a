#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/last_output.h"
#include "posenc/export.h"
#include "posenc/nn/positional_encoding.h"
#include "posenc/nn/token_embedding.h"

namespace posenc POSENC_EXPORT {

/// Options of InputEmbedding.
struct InputEmbeddingOptions {
  /// The default options for these sizes.
  InputEmbeddingOptions(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : token_(vocab_size, d_model), position_(d_model, max_len) {}

  /// Options of the token embedding.
  TORCH_ARG(TokenEmbeddingOptions, token);
  /// Options of the positional encoding.
  TORCH_ARG(PositionalEncodingOptions, position);
  /// Reuses the memory of the last output; see TokenAndPositionEmbeddingOptions.
  TORCH_ARG(bool, reuse_output) = false;
};

/// Token embeddings plus positional encodings; by default without scale and dropout:
/// dropout(token_embedding.embedding.weight[ids] * scale + pos_encoding.pe).
///
/// ids: (B, L) or (L); (L, B) with batch_first(false)  ->  (..., d_model).
///
/// Keys: `token_embedding.embedding.weight`, `pos_encoding.pe`.
///
/// Errors: those of TokenEmbedding and PositionalEncoding.
///
/// Source: notebook 00 `InputEmbedding`.
class InputEmbeddingImpl : public Cloneable<InputEmbeddingImpl> {
 public:
  /// A module with the default options.
  InputEmbeddingImpl(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : InputEmbeddingImpl(InputEmbeddingOptions(vocab_size, d_model, max_len)) {}
  /// A module with the given options.
  explicit InputEmbeddingImpl(InputEmbeddingOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the embedded ids. For `offset` and `position_ids` see
  /// PositionalEncodingImpl::forward().
  torch::Tensor forward(const torch::Tensor& ids, int64_t offset = 0,
                        const torch::Tensor& position_ids = {});

  InputEmbeddingOptions options;             ///< the options given to the constructor
  TokenEmbedding token_embedding{nullptr};   ///< the token embedding
  PositionalEncoding pos_encoding{nullptr};  ///< the positional encoding

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  LastOutput last_output_;
};

TORCH_MODULE(InputEmbedding);

}  // namespace posenc
