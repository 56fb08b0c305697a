#pragma once

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/functional/activation.h"

namespace posenc POSENC_EXPORT {

/// Options of GatedFeedForward.
struct GatedFeedForwardOptions {
  /// The default options for width `d_model` and inner width `d_ff`.
  GatedFeedForwardOptions(int64_t d_model, int64_t d_ff) : d_model_(d_model), d_ff_(d_ff) {}

  /// Width D of x.
  TORCH_ARG(int64_t, d_model);
  /// Width of the gate; intermediate_size in a config.json.
  TORCH_ARG(int64_t, d_ff);
  /// The activation of the gate, hidden_act in a config.json: SiLU is SwiGLU (Llama, Mistral,
  /// Qwen), GELU GeGLU, GELUTanh its approximation (Gemma), ReLU ReGLU.
  TORCH_ARG(Activation, gate) = Activation::SiLU;
  /// Whether the projections have a bias.
  TORCH_ARG(bool, bias) = false;

  POSENC_FIELDS(GatedFeedForwardOptions, d_model_, d_ff_, gate_, bias_);
};

/// The feed-forward network of the Llama family: down_proj(gate(gate_proj(x)) * up_proj(x)).
///
/// x: (..., D)  ->  (..., D).
///
/// ```cpp
/// posenc::GatedFeedForward network(/*d_model=*/32, /*d_ff=*/86);
/// torch::Tensor x = network->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `gate_proj.weight` and `up_proj.weight` (d_ff, D), `down_proj.weight` (D, d_ff), and
/// `.bias` of each with bias(true).
///
/// Source: transformers' LlamaMLP, GemmaMLP.
class GatedFeedForwardImpl : public Cloneable<GatedFeedForwardImpl> {
 public:
  /// A module with the default options.
  GatedFeedForwardImpl(int64_t d_model, int64_t d_ff)
      : GatedFeedForwardImpl(GatedFeedForwardOptions(d_model, d_ff)) {}
  /// A module with the given options.
  explicit GatedFeedForwardImpl(GatedFeedForwardOptions options_);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// Returns the network's output.
  torch::Tensor forward(const torch::Tensor& x);

  GatedFeedForwardOptions options;       ///< the options given to the constructor
  torch::nn::Linear gate_proj{nullptr};  ///< the projection that the activation is applied to
  torch::nn::Linear up_proj{nullptr};    ///< the projection that it gates
  torch::nn::Linear down_proj{nullptr};  ///< the projection back to D
};

TORCH_MODULE(GatedFeedForward);

}  // namespace posenc
