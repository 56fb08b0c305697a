#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

#include "posenc/nn/position_embedding.h"

namespace posenc {

struct TimestepEmbeddingOptions {
  TimestepEmbeddingOptions(int64_t max_len, int64_t d_model, int64_t channels)
      : max_len_(max_len), d_model_(d_model), channels_(channels), hidden_(channels) {}

  /// Number of timesteps.
  TORCH_ARG(int64_t, max_len);
  TORCH_ARG(int64_t, d_model);
  /// Channels C of the image.
  TORCH_ARG(int64_t, channels);
  /// Width between the two linear maps; C in the notebook.
  TORCH_ARG(int64_t, hidden);
};

/// A diffusion timestep as one value a channel: Linear(ReLU(Linear(pe[t]))).
///
/// t: (N) or (N, 1), any integer type, in [0, max_len)  ->  (N, C, 1, 1); add_to() lays it on an
/// image, (C, H, W) or (N, C, H, W) -> (N, C, H, W).
/// Keys: `pe.embedding.weight` (frozen), `pe_linear.0.weight`, `pe_linear.0.bias`,
/// `pe_linear.2.weight`, `pe_linear.2.bias`. Errors: functional::timestep_embedding().
/// Source: notebook 02, `PositionalEncoding` and `pe_linear`.
class TimestepEmbeddingImpl : public Cloneable<TimestepEmbeddingImpl> {
 public:
  TimestepEmbeddingImpl(int64_t max_len, int64_t d_model, int64_t channels)
      : TimestepEmbeddingImpl(TimestepEmbeddingOptions(max_len, d_model, channels)) {}
  explicit TimestepEmbeddingImpl(TimestepEmbeddingOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& t);

  /// image + forward(t), broadcast over the pixels.
  torch::Tensor add_to(const torch::Tensor& image, const torch::Tensor& t);

  TimestepEmbeddingOptions options;
  PositionEmbedding pe{nullptr};
  torch::nn::Sequential pe_linear{nullptr};
};

TORCH_MODULE(TimestepEmbedding);

}  // namespace posenc
