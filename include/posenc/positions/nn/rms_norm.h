#pragma once

#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Options of RMSNorm.
struct RMSNormOptions {
  /// Where a normalised x of half precision, which is computed in float32, is rounded.
  enum class RoundTo {
    BeforeWeight,  ///< before it is multiplied by the weight: Llama, Mistral, Qwen
    AfterWeight,   ///< after: Gemma, OLMo 2
  };

  /// The default options for width `d_model`: those of Llama.
  explicit RMSNormOptions(int64_t d_model) : d_model_(d_model) {}
  /// Gemma's, which multiplies by 1 + weight.
  static RMSNormOptions gemma(int64_t d_model) {
    return RMSNormOptions(d_model).round(RoundTo::AfterWeight).plus_one(true);
  }

  /// Width D of x.
  TORCH_ARG(int64_t, d_model);
  /// Added to the mean square; rms_norm_eps in a config.json.
  TORCH_ARG(double, eps) = 1e-6;
  /// Where half precision is rounded.
  TORCH_ARG(RoundTo, round) = RoundTo::BeforeWeight;
  /// Whether x is multiplied by 1 + weight, which is then initialised to zeros.
  TORCH_ARG(bool, plus_one) = false;

  POSENC_FIELDS(RMSNormOptions, d_model_, eps_, round_, plus_one_);
};

/// Root mean square normalisation over the last axis: x / sqrt(mean(x^2) + eps) * weight, computed
/// in float32.
///
/// x: (..., D)  ->  (..., D), in the dtype of x.
///
/// ```cpp
/// posenc::RMSNorm norm(/*d_model=*/32);
/// torch::Tensor x = norm->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `weight` (D), initialised to ones.
///
/// Errors: c10::ValueError for another width; c10::TypeError unless x is floating-point.
///
/// Source: transformers' LlamaRMSNorm, GemmaRMSNorm, Olmo2RMSNorm.
class RMSNormImpl : public Cloneable<RMSNormImpl> {
 public:
  /// A module with the default options.
  explicit RMSNormImpl(int64_t d_model) : RMSNormImpl(RMSNormOptions(d_model)) {}
  /// A module with the given options.
  explicit RMSNormImpl(RMSNormOptions options_);

  void reset() override;
  /// Sets the weight to ones, or with plus_one to zeros.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns x normalised.
  torch::Tensor forward(const torch::Tensor& x);

  RMSNormOptions options;  ///< the options given to the constructor
  torch::Tensor weight;    ///< (D)
};

TORCH_MODULE(RMSNorm);

}  // namespace posenc
