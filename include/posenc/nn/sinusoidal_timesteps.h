#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <string>

#include "posenc/core/cloneable.h"
#include "posenc/sinusoid/options.h"

namespace posenc {

struct SinusoidalTimestepsOptions {
  SinusoidalTimestepsOptions(int64_t d_model, int64_t hidden)
      : d_model_(d_model), hidden_(hidden), channels_(hidden) {}

  /// Channels D of the sinusoid; an odd one ends in a zero.
  TORCH_ARG(int64_t, d_model);
  /// Width between the two linear maps; diffusers' `time_embed_dim`.
  TORCH_ARG(int64_t, hidden);
  /// Channels C of the result; as wide as hidden unless set.
  TORCH_ARG(int64_t, channels);
  /// The Sequential that holds the two linear maps: `mlp` in DiT, `time_embed` in guided-diffusion.
  /// Empty: none, they are `linear_1` and `linear_2` as in diffusers.
  TORCH_ARG(std::string, sequential) = "";
  /// Which sinusoid; by default `diffusers_timesteps` with flip_sin_to_cos 1 and
  /// downscale_freq_shift 0, as diffusers' UNets ask for it and as DiT and guided-diffusion
  /// compute.
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
};

/// A diffusion time as a vector: linear_2(SiLU(linear_1(sinusoid(t)))), the sinusoid at real times
/// and rounded to the weights' dtype.
///
/// t: (N), integer or real, in timesteps, on any device  ->  (N, C) on the weights' device.
/// Keys: `linear_1.weight` (H, D), `linear_1.bias`, `linear_2.weight` (C, H), `linear_2.bias`; with
/// .sequential("mlp"): `mlp.0.weight`, `mlp.0.bias`, `mlp.2.weight`, `mlp.2.bias`. Initialised as
/// nn.Linear. Errors: functional::timestep_rows(); c10::ValueError for widths below 1, a sinusoid
/// of another width and a name with a dot. Source: `Timesteps` and `TimestepEmbedding` (diffusers
/// 0.42.1), `TimestepEmbedder` (facebookresearch/DiT), `timestep_embedding`
/// (openai/guided-diffusion).
class SinusoidalTimestepsImpl : public Cloneable<SinusoidalTimestepsImpl> {
 public:
  SinusoidalTimestepsImpl(int64_t d_model, int64_t hidden)
      : SinusoidalTimestepsImpl(SinusoidalTimestepsOptions(d_model, hidden)) {}
  explicit SinusoidalTimestepsImpl(SinusoidalTimestepsOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& t);

  SinusoidalTimestepsOptions options;
  torch::nn::Linear linear_1{nullptr};        ///< without .sequential()
  torch::nn::Linear linear_2{nullptr};        ///< without .sequential()
  torch::nn::Sequential sequential{nullptr};  ///< with .sequential(name), under that name

 private:
  torch::nn::LinearImpl& first();
  torch::nn::LinearImpl& second();
};

TORCH_MODULE(SinusoidalTimesteps);

}  // namespace posenc
