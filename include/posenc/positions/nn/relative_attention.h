#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <utility>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/relative/index.h"
#include "posenc/positions/relative/scores.h"
#include "posenc/positions/relative/term.h"

namespace posenc POSENC_EXPORT {

/// Options of RelativeAttention.
struct RelativeAttentionOptions {
  /// Vectors of head_dim channels D, for an index.
  RelativeAttentionOptions(relative::Index index, int64_t head_dim)
      : index_(index), head_dim_(head_dim) {}

  /// How the table is indexed by the distance.
  TORCH_ARG(relative::Index, index);
  /// Channels of a head D.
  TORCH_ARG(int64_t, head_dim);
  /// Rows R of the table with relative::Shift; the other kinds have a number of their own.
  TORCH_ARG(int64_t, rows) = 0;
  /// The number of heads that have a table each; 0: all heads share one.
  TORCH_ARG(int64_t, num_heads) = 0;
  /// Whose vectors the rows are multiplied by.
  TORCH_ARG(relative::Contract, contract) = relative::Contract::Query;
  /// How scores, term and mask are put together.
  TORCH_ARG(relative::Scoring, scoring);

  POSENC_FIELDS(RelativeAttentionOptions, index_, head_dim_, rows_, num_heads_, contract_,
                scoring_);
};

/// Scores of attention with a term of learned vectors, one for each index of the distance of a key
/// from a query:
///
///     scores(i, j) = scoring(q_i . k_j, q_i . weight(index(j - i)))
///
/// or k_j . weight(...) with Contract::Key.
///
/// q: (B, H, Q, D), k: (B, H, K, D), mask: numbers, broadcastable to (B, H, Q, K)  ->  (B, H, Q,
/// K), the input of the softmax.
///
/// ```cpp
/// posenc::RelativeAttention shaw(
///     posenc::RelativeAttentionOptions(posenc::relative::Clamp{64, 8}, 16));
/// auto q = torch::randn({2, 4, 10, 16}), k = torch::randn({2, 4, 10, 16});
/// auto weights = shaw->forward(q, k).softmax(-1);
/// ```
///
/// Initialised from N(0, 1), as torch.nn.Embedding.
///
/// Keys: `weight` (R, D), or (H, R, D) with num_heads; `distance_embedding.weight` in
/// Wav2Vec2-BERT.
///
/// Errors: c10::ValueError at construction for no channels, no rows, and an index whose members do
/// not fit each other; in forward() those of relative_term() and relative_scores().
///
/// Source: transformers 5.23, `Wav2Vec2BertSelfAttention`, up to the order of sums.
class RelativeAttentionImpl : public Cloneable<RelativeAttentionImpl> {
 public:
  /// A module with the given options.
  explicit RelativeAttentionImpl(RelativeAttentionOptions options_);
  void reset() override;
  /// Draws the weight from N(0, 1).
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the scores (B, H, Q, K); `offset` is the position of the first query, the number of
  /// keys before it.
  torch::Tensor forward(const torch::Tensor& q, const torch::Tensor& k,
                        const torch::Tensor& mask = {}, int64_t offset = 0);

  RelativeAttentionOptions options;  ///< the options given to the constructor
  torch::Tensor weight;              ///< (R, D) or (H, R, D)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(torch::Tensor())},
                                  {3, torch::nn::AnyValue(int64_t{0})})
};

TORCH_MODULE(RelativeAttention);

}  // namespace posenc
