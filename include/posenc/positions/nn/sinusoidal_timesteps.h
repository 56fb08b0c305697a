#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <string>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// Options of SinusoidalTimesteps.
struct SinusoidalTimestepsOptions {
  /// The default options for these widths.
  SinusoidalTimestepsOptions(int64_t d_model, int64_t hidden)
      : d_model_(d_model), hidden_(hidden), channels_(hidden) {}

  /// Number of channels D of the sinusoid. If it is odd, the last channel is zero.
  TORCH_ARG(int64_t, d_model);
  /// Width H between the two linear layers; diffusers' `time_embed_dim`.
  TORCH_ARG(int64_t, hidden);
  /// Number of channels C of the result; the same as hidden unless set.
  TORCH_ARG(int64_t, channels);
  /// Name of the Sequential that holds the two linear layers: `mlp` in DiT, `time_embed` in
  /// guided-diffusion. Empty: they are named `linear_1` and `linear_2`, as in diffusers.
  TORCH_ARG(std::string, sequential) = "";
  /// The sinusoid. The default is the preset `diffusers_timesteps` with flip_sin_to_cos 1 and
  /// downscale_freq_shift 0, as used by diffusers' UNets, DiT and guided-diffusion.
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;

  POSENC_FIELDS(SinusoidalTimestepsOptions, d_model_, hidden_, channels_, sequential_, sinusoid_);
};

/// diffusers' `Timesteps` and `TimestepEmbedding` (the class TimestepEmbedding here is
/// another). Embeds diffusion times, integer or fractional, as vectors:
/// linear_2(SiLU(linear_1(sinusoid(t)))), with the sinusoid rounded to the weights' dtype.
///
/// t: (N), integer or floating-point, in timesteps, on any device  ->  (N, C) on the weights'
/// device.
///
/// ```cpp
/// posenc::SinusoidalTimesteps embedding(/*d_model=*/320, /*hidden=*/1280);
/// torch::Tensor x = embedding->forward(torch::tensor({0, 250, 999}));  // (3, 1280)
/// ```
///
/// Keys: `linear_1.weight` (H, D), `linear_1.bias`, `linear_2.weight` (C, H), `linear_2.bias`; with
/// .sequential("mlp"): `mlp.0.weight`, `mlp.0.bias`, `mlp.2.weight`, `mlp.2.bias`. Initialised like
/// nn.Linear.
///
/// Errors: those of functional::timestep_rows(); c10::ValueError for widths below 1, a sinusoid of
/// another width and a name with a dot.
///
/// Source: `Timesteps` and `TimestepEmbedding` (diffusers 0.42.1), `TimestepEmbedder`
/// (facebookresearch/DiT), `timestep_embedding` (openai/guided-diffusion).
class SinusoidalTimestepsImpl : public Cloneable<SinusoidalTimestepsImpl> {
 public:
  /// A module with the default options.
  SinusoidalTimestepsImpl(int64_t d_model, int64_t hidden)
      : SinusoidalTimestepsImpl(SinusoidalTimestepsOptions(d_model, hidden)) {}
  /// A module with the given options.
  explicit SinusoidalTimestepsImpl(SinusoidalTimestepsOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the embedding of the times `t`.
  torch::Tensor forward(const torch::Tensor& t);

  SinusoidalTimestepsOptions options;         ///< the options given to the constructor
  torch::nn::Linear linear_1{nullptr};        ///< without .sequential()
  torch::nn::Linear linear_2{nullptr};        ///< without .sequential()
  torch::nn::Sequential sequential{nullptr};  ///< with .sequential(name), registered as that name

 private:
  torch::nn::LinearImpl& first();
  torch::nn::LinearImpl& second();
};

TORCH_MODULE(SinusoidalTimesteps);

}  // namespace posenc
