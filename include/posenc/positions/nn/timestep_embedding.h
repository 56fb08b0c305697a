#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/position_embedding.h"

namespace posenc POSENC_EXPORT {

/// Options of TimestepEmbedding.
struct TimestepEmbeddingOptions {
  /// The default options for these widths.
  TimestepEmbeddingOptions(int64_t d_model, int64_t channels)
      : d_model_(d_model), channels_(channels), hidden_(channels) {}
  /// Not available, since the order of three numbers would be easy to mistake: set max_len().
  TimestepEmbeddingOptions(int64_t, int64_t, int64_t) = delete;

  /// Width of the sinusoid.
  TORCH_ARG(int64_t, d_model);
  /// Number of channels C of the image.
  TORCH_ARG(int64_t, channels);
  /// Width between the two linear layers; C unless set.
  TORCH_ARG(int64_t, hidden);
  /// Number of timesteps.
  TORCH_ARG(int64_t, max_len) = 1000;

  POSENC_FIELDS(TimestepEmbeddingOptions, d_model_, channels_, hidden_, max_len_);
};

/// Embeds a timestep as one value per channel (diffusers' TimestepEmbedding is SinusoidalTimesteps
/// here): Linear(ReLU(Linear(pe[t]))).
///
/// t: (N) or (N, 1), any integer type, in [0, max_len)  ->  (N, C, 1, 1). add_to() adds it to an
/// image, (C, H, W) or (N, C, H, W)  ->  (N, C, H, W).
///
/// ```cpp
/// posenc::TimestepEmbedding embedding(/*d_model=*/32, /*channels=*/16);
/// torch::Tensor t = torch::tensor({0, 250, 999});
/// torch::Tensor noisy = torch::randn({3, 16, 8, 8});
/// torch::Tensor x = embedding->add_to(noisy, t);  // (3, 16, 8, 8)
/// ```
///
/// Keys: `pe.embedding.weight` (frozen), `pe_linear.0.weight`, `pe_linear.0.bias`,
/// `pe_linear.2.weight`, `pe_linear.2.bias`.
///
/// Errors: those of functional::timestep_embedding() and functional::add_timestep().
///
/// Source: `PositionalEncoding` and `pe_linear` in notebooks_ref/02_timestep_embedding.ipynb.
class TimestepEmbeddingImpl : public Cloneable<TimestepEmbeddingImpl> {
 public:
  /// A module with the default options.
  TimestepEmbeddingImpl(int64_t d_model, int64_t channels)
      : TimestepEmbeddingImpl(TimestepEmbeddingOptions(d_model, channels)) {}
  /// Not available; see TimestepEmbeddingOptions.
  TimestepEmbeddingImpl(int64_t, int64_t, int64_t) = delete;
  /// A module with the given options.
  explicit TimestepEmbeddingImpl(TimestepEmbeddingOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the embedding of the timesteps `t`.
  torch::Tensor forward(const torch::Tensor& t);

  /// Returns image + forward(t), broadcast over the pixels.
  torch::Tensor add_to(const torch::Tensor& image, const torch::Tensor& t);

  TimestepEmbeddingOptions options;          ///< the options given to the constructor
  PositionEmbedding pe{nullptr};             ///< the sinusoid's table
  torch::nn::Sequential pe_linear{nullptr};  ///< the two linear layers
};

TORCH_MODULE(TimestepEmbedding);

}  // namespace posenc
