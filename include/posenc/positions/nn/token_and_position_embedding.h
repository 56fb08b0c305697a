#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/core/opaque.h"
#include "posenc/export.h"
#include "posenc/positions/nn/embedding_options.h"
#include "posenc/positions/nn/encoder_embeddings_options.h"
#include "posenc/positions/nn/learned_position_embedding.h"
#include "posenc/positions/nn/positional_encoding.h"
#include "posenc/positions/nn/transformer_norm.h"

namespace posenc POSENC_EXPORT {

class LastOutput;
extern template class detail::Opaque<LastOutput>;

/// Options of TokenAndPositionEmbedding.
struct TokenAndPositionEmbeddingOptions
    : TokenAndPositionOptions<TokenAndPositionEmbeddingOptions> {
  /// The default options for these sizes, with Scale::SqrtDim and a dropout of 0.1.
  TokenAndPositionEmbeddingOptions(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : TokenAndPositionOptions(vocab_size, d_model, max_len) {
    scale(Scale::SqrtDim).dropout(0.1);
  }

  /// How tokens are numbered: PositionIds::Arange; FromIds, positions_from_ids() with padding_idx,
  /// whose table grows as fairseq's does; or None, without positions.
  TORCH_ARG(embeddings::PositionIds, position_ids) = embeddings::PositionIds::Arange;
  /// A trained table in place of a sinusoid; needs PositionIds::Arange.
  TORCH_ARG(bool, learned_positions) = false;
  /// Rows of a trained table before that of the first position: 2 in BART.
  TORCH_ARG(int64_t, position_offset) = 0;
  /// Where a layer norm is: Norm::None, AfterSum, before the dropout, or AfterTokens, before
  /// positions are added.
  TORCH_ARG(embeddings::Norm, norm) = embeddings::Norm::None;
  /// Added to the variance in the norm.
  TORCH_ARG(double, layer_norm_eps) = 1e-5;

  POSENC_FIELDS(TokenAndPositionEmbeddingOptions, vocab_size_, d_model_, scale_, padding_idx_,
                max_len_, table_source_, batch_first_, grow_, sinusoid_, position_ids_,
                learned_positions_, position_offset_, norm_, layer_norm_eps_);
  POSENC_TRAINING_FIELDS(embedding_init_, sparse_, dropout_, reuse_output_);
};

/// Token embeddings plus sinusoidal positions, by default multiplied by sqrt(d_model), unlike those
/// of InputEmbedding: dropout(token_embedding.weight[ids] * scale + position_encoding.pe). Set
/// .scale(Scale::None) for a Python class that does not multiply. The keys do not show the scale.
///
/// The table is drawn from N(0, 1), as in the reference class. To train from scratch, set
/// .embedding_init(EmbeddingInit::InverseSqrtDim), as Transformer does.
///
/// ids: (B, L) or (L); (L, B) with batch_first(false)  ->  (..., d_model).
///
/// ```cpp
/// posenc::TokenAndPositionEmbedding embedding(/*vocab_size=*/100, /*d_model=*/8);
/// torch::Tensor ids = torch::tensor({{5, 6, 7, 8}, {9, 5, 0, 0}});
/// torch::Tensor x = embedding->forward(ids);  // (B, L, 8)
/// ```
///
/// Keys: `token_embedding.weight`, `position_encoding.pe`, or `position_embedding.weight` of a
/// trained table, and `norm.weight` and `norm.bias` with a norm.
///
/// Errors: those of functional::embed(); c10::ValueError for options that contradict each other,
/// and for more tokens than a trained table has positions.
///
/// Source: the reference class `TokenAndPositionEmbedding` in notebooks_ref; for the options that
/// it lacks, the encoder-decoders of transformers 5.23, such as `BartDecoder`.
class TokenAndPositionEmbeddingImpl : public Cloneable<TokenAndPositionEmbeddingImpl> {
 public:
  /// A module with the default options.
  TokenAndPositionEmbeddingImpl(int64_t vocab_size, int64_t d_model, int64_t max_len = 5000)
      : TokenAndPositionEmbeddingImpl(
            TokenAndPositionEmbeddingOptions(vocab_size, d_model, max_len)) {}
  /// A module with the given options.
  explicit TokenAndPositionEmbeddingImpl(TokenAndPositionEmbeddingOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the embedded ids. For `offset` and `position_ids` see
  /// PositionalEncodingImpl::forward(); trained positions take no `position_ids`, and
  /// PositionIds::FromIds those that replace positions_from_ids(ids, padding_idx, offset) by
  /// smaller or equal ones.
  torch::Tensor forward(const torch::Tensor& ids, int64_t offset = 0,
                        const torch::Tensor& position_ids = {});

  /// Uses the token table of `embedding`, which another module registers, and drops this module's
  /// own. Its padding row is that of `embedding`, as in Python. A clone uses the same `embedding`:
  /// if both modules are cloned, call this again.
  void share_tokens(const torch::nn::Embedding& embedding);

  TokenAndPositionEmbeddingOptions options;              ///< the options given to the constructor
  torch::nn::Embedding token_embedding{nullptr};         ///< the token table
  PositionalEncoding position_encoding{nullptr};         ///< the sinusoid; null without one
  LearnedPositionEmbedding position_embedding{nullptr};  ///< the trained table; null without one
  TransformerNorm norm{nullptr};                         ///< null without one
  torch::nn::Dropout dropout{nullptr};                   ///< applied to the sum

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})},
                                  {2, torch::nn::AnyValue(torch::Tensor())})

 private:
  detail::Opaque<LastOutput> last_output_;
  bool shares_tokens_ = false;
};

TORCH_MODULE(TokenAndPositionEmbedding);

}  // namespace posenc
