#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/weight_notes.h"
#include "posenc/sinusoid/options.h"

namespace posenc {

struct PositionEmbeddingOptions {
  /// Where the table lives, and hence its key.
  enum class Storage {
    Embedding,  ///< a frozen parameter `embedding.weight`, as in notebook 02
    Buffer,     ///< a buffer `pos_enc`, as in notebook 04
  };

  PositionEmbeddingOptions(int64_t max_len, int64_t d_model)
      : max_len_(max_len), d_model_(d_model) {}

  /// Rows of the table, in positions.
  TORCH_ARG(int64_t, max_len);
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(Storage, storage) = Storage::Embedding;
  /// Which sinusoid; by default that of the notebook whose storage it is (presets `notebook_002`
  /// and `notebook_004`, other last bits).
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
};

/// Looks sinusoidal encodings up by position: table[position_ids].
///
/// position_ids: any shape and integer type, in [0, max_len)  ->  (..., d_model).
/// Key: `embedding.weight` (requires_grad false) or `pos_enc`, (max_len, d_model), in the default
/// dtype: the notebook's bits where that is float32 or float64. A half type is rounded once from
/// float32; notebook 02 would count its positions in it. Converted to another dtype the table is
/// rounded once, from the recipe. Errors: functional::position_embedding().
/// Source: notebook 02 `PositionalEncoding`, notebook 04 `MyPositionEncoding`.
class PositionEmbeddingImpl : public Cloneable<PositionEmbeddingImpl>, public WeightNotes {
 public:
  PositionEmbeddingImpl(int64_t max_len, int64_t d_model)
      : PositionEmbeddingImpl(PositionEmbeddingOptions(max_len, d_model)) {}
  explicit PositionEmbeddingImpl(PositionEmbeddingOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  std::vector<ComputedTable> computed_tables() const override;
  using torch::nn::Module::to;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Dtype dtype, bool non_blocking = false) override;

  torch::Tensor forward(const torch::Tensor& position_ids);

  /// The table, (max_len, d_model), wherever it is stored.
  torch::Tensor table() const;
  /// The sinusoid in use.
  SinusoidOptions sinusoid() const;

  PositionEmbeddingOptions options;
  torch::nn::Embedding embedding{nullptr};  ///< with Storage::Embedding
  torch::Tensor pos_enc;                    ///< with Storage::Buffer
};

TORCH_MODULE(PositionEmbedding);

}  // namespace posenc
