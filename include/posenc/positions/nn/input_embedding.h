#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/core/opaque.h"
#include "posenc/positions/nn/embedding_options.h"
#include "posenc/positions/nn/positional_encoding.h"
#include "posenc/positions/nn/token_embedding.h"

namespace posenc POSENC_EXPORT {

class LastOutput;
extern template class detail::Opaque<LastOutput>;

/// Options of InputEmbedding.
struct InputEmbeddingOptions : TokenAndPositionOptions<InputEmbeddingOptions> {
  /// The default options for these sizes.
  InputEmbeddingOptions(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : TokenAndPositionOptions(vocab_size, d_model, max_len) {}

  /// Excludes the token table from training (requires_grad false).
  TORCH_ARG(bool, freeze) = false;

  POSENC_FIELDS(InputEmbeddingOptions, vocab_size_, d_model_, scale_, embedding_init_, padding_idx_,
                sparse_, max_len_, table_source_, dropout_, batch_first_, grow_, sinusoid_,
                reuse_output_, freeze_);
};

/// Token embeddings plus positional encodings, by default without a scale, unlike those of
/// TokenAndPositionEmbedding, and without dropout:
/// dropout(token_embedding.embedding.weight[ids] * scale + pos_encoding.pe). Set
/// .scale(Scale::SqrtDim) for a Python class that multiplies by sqrt(d_model), and train such a
/// module with EmbeddingInit::InverseSqrtDim. The keys do not show the scale.
///
/// ids: (B, L) or (L); (L, B) with batch_first(false)  ->  (..., d_model).
///
/// ```cpp
/// posenc::InputEmbedding embedding(/*vocab_size=*/100, /*d_model=*/8, /*max_len=*/64);
/// torch::Tensor ids = torch::tensor({{5, 6, 7, 8}, {9, 5, 0, 0}});
/// torch::Tensor x = embedding->forward(ids);  // (B, L, 8)
/// ```
///
/// Keys: `token_embedding.embedding.weight`, `pos_encoding.pe`.
///
/// Errors: those of TokenEmbedding and PositionalEncoding.
///
/// Source: the reference class `InputEmbedding` in notebooks_ref.
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
  detail::Opaque<LastOutput> last_output_;
};

TORCH_MODULE(InputEmbedding);

}  // namespace posenc
