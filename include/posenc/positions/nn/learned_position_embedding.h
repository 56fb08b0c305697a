#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/functional/extend_positions.h"
#include "posenc/positions/functional/resize_positions.h"

namespace posenc POSENC_EXPORT {

/// Options of LearnedPositionEmbedding.
struct LearnedPositionEmbeddingOptions {
  /// A table of `num_embeddings` rows, including those before `offset`, of width `embedding_dim`.
  LearnedPositionEmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}

  /// Number of rows.
  TORCH_ARG(int64_t, num_embeddings);
  /// Width D of a row.
  TORCH_ARG(int64_t, embedding_dim);
  /// Added to all position ids: 2 in BART, whose first rows are never used.
  TORCH_ARG(int64_t, offset) = 0;
  /// A row that is initialised to zeros and gets no gradient.
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;

  POSENC_FIELDS(LearnedPositionEmbeddingOptions, num_embeddings_, embedding_dim_, offset_,
                padding_idx_);
};

/// A trained table of positions: weight[position_ids + offset]. It does not grow, since an
/// untrained row has no meaning; resize() adapts it to another grid of patches as the named system
/// does, and extend() makes it longer.
///
/// position_ids: any shape and integer type, in [0, num_embeddings - offset)  ->  (..., D).
///
/// ```cpp
/// posenc::LearnedPositionEmbedding positions(/*num_embeddings=*/512, /*embedding_dim=*/8);
/// torch::Tensor rows = positions->forward(torch::arange(16));  // (16, 8)
/// ```
///
/// Keys: `weight`, (num_embeddings, D), initialised as that of nn.Embedding.
///
/// Errors: c10::IndexError for a position outside the table, with its place; c10::TypeError for
/// positions that are not integers.
///
/// Source: nn.Embedding as transformers 5.23 uses it; `BartLearnedPositionalEmbedding`.
class LearnedPositionEmbeddingImpl : public Cloneable<LearnedPositionEmbeddingImpl> {
 public:
  /// A table with the default options. The sizes are in nn.Embedding's order.
  LearnedPositionEmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : LearnedPositionEmbeddingImpl(
            LearnedPositionEmbeddingOptions(num_embeddings, embedding_dim)) {}
  /// A table with the given options.
  explicit LearnedPositionEmbeddingImpl(LearnedPositionEmbeddingOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the rows at `position_ids`.
  torch::Tensor forward(const torch::Tensor& position_ids);

  /// The number of positions: num_embeddings - offset.
  int64_t max_positions() const;

  /// Replaces the table of a grid of patches, whose first `prefix` rows are class tokens, by that
  /// of height x width patches; see functional::resize_positions(). resize() replaces the
  /// parameter, so create optimisers afterwards.
  void resize(int64_t height, int64_t width, PositionResize rule, int64_t prefix = 0);

  /// Makes the table longer, to `rows` rows, of which the first `prefix` are no positions; see
  /// functional::extend_positions(). It replaces the parameter, as resize() does.
  void extend(int64_t rows, PositionExtension rule, int64_t prefix = 0);

  LearnedPositionEmbeddingOptions options;  ///< the options given to the constructor
  torch::Tensor weight;                     ///< (num_embeddings, D)

 private:
  void replace_table(const torch::Tensor& table);
};

TORCH_MODULE(LearnedPositionEmbedding);

}  // namespace posenc
