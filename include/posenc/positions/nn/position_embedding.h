#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/fields.h"
#include "posenc/positions/nn/table_module.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// Options of PositionEmbedding.
struct PositionEmbeddingOptions {
  /// How the table is registered, which also decides its key.
  enum class RegisterAs {
    Parameter,  ///< a frozen parameter `embedding.weight`
    Buffer,     ///< a buffer `pos_enc`
  };

  /// The default options for this width.
  explicit PositionEmbeddingOptions(int64_t d_model) : d_model_(d_model) {}
  /// Not available, since the order of the two numbers would be easy to mistake: set max_len().
  PositionEmbeddingOptions(int64_t, int64_t) = delete;

  /// Width of the table.
  TORCH_ARG(int64_t, d_model);
  /// Number of positions in the table.
  TORCH_ARG(int64_t, max_len) = 5000;
  /// How the table is registered.
  TORCH_ARG(RegisterAs, register_as) = RegisterAs::Parameter;
  /// The sinusoid. The default is that of the reference class that registers it in the same way
  /// (presets `notebook_002` and `notebook_004`, which differ in the last bits).
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;

  POSENC_FIELDS(PositionEmbeddingOptions, d_model_, max_len_, register_as_, sinusoid_);
};

/// Looks up sinusoidal encodings by position: table[position_ids].
///
/// position_ids: any shape and integer type, in [0, max_len)  ->  (..., d_model).
///
/// The table is created in the default dtype, bit-identical to the reference class's if that is
/// float32 or float64. A half-precision table is rounded once from float32; the reference
/// class would compute even its positions in half precision. When converted to another dtype the
/// table is recomputed from the recipe and rounded once.
///
/// ```cpp
/// posenc::PositionEmbedding positions(/*d_model=*/8);
/// torch::Tensor rows = positions->forward(torch::arange(16));  // (16, 8)
/// ```
///
/// Keys: `embedding.weight` (requires_grad false) or `pos_enc`, (max_len, d_model).
///
/// Errors: those of functional::position_embedding().
///
/// Source: the reference classes `PositionalEncoding` (02_timestep_embedding.ipynb) and
/// `MyPositionEncoding` in notebooks_ref.
class PositionEmbeddingImpl : public TableModule<PositionEmbeddingImpl> {
 public:
  /// A module with the default options.
  explicit PositionEmbeddingImpl(int64_t d_model)
      : PositionEmbeddingImpl(PositionEmbeddingOptions(d_model)) {}
  /// Not available; see PositionEmbeddingOptions.
  PositionEmbeddingImpl(int64_t, int64_t) = delete;
  /// A module with the given options.
  explicit PositionEmbeddingImpl(PositionEmbeddingOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// Returns the rows of the table at `position_ids`.
  torch::Tensor forward(const torch::Tensor& position_ids);

  /// The table, (max_len, d_model), whichever way it is registered.
  torch::Tensor table() const;
  /// The sinusoid, with the default resolved.
  SinusoidOptions sinusoid() const;

  PositionEmbeddingOptions options;         ///< the options given to the constructor
  torch::nn::Embedding embedding{nullptr};  ///< with RegisterAs::Parameter
  torch::Tensor pos_enc;                    ///< with RegisterAs::Buffer

 private:
  TableRecipe table_recipe() const override;
};

TORCH_MODULE(PositionEmbedding);

}  // namespace posenc
