#pragma once

#include <torch/nn/pimpl.h>

#include <optional>

#include "posenc/core/cloneable.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The kind of a TransformerNorm.
enum class NormKind {
  Layer,         ///< LayerNorm
  RMS,           ///< RMSNorm: Llama, Qwen
  RMSPlusOne,    ///< RMSNormOptions::gemma(), which multiplies by 1 + weight
  LayerPlusOne,  ///< LayerNorm, which multiplies by 1 + weight: Nemotron
  Affine,        ///< x * weight + bias, which normalises nothing: MobileBERT's NoNorm
};

/// Returns `layer`, `rms`, `rms_plus_one`, `layer_plus_one` or `affine`.
const char* to_string(NormKind kind);

/// Options of TransformerNorm.
struct TransformerNormOptions {
  /// The default options for width `d_model`: those of LayerNorm.
  explicit TransformerNormOptions(int64_t d_model) : d_model_(d_model) {}

  /// Width D of x.
  TORCH_ARG(int64_t, d_model);
  /// The kind.
  TORCH_ARG(NormKind, kind) = NormKind::Layer;
  /// Added to the variance, or the mean square.
  TORCH_ARG(double, eps) = 1e-5;
  /// Whether a bias is added; an RMS norm has none.
  TORCH_ARG(bool, bias) = true;
  /// Whether there is a weight, and a bias: torch.nn.LayerNorm's elementwise_affine.
  TORCH_ARG(bool, elementwise_affine) = true;
  /// The number of heads, of which each has its own weight, and bias, (num_heads, D); x is
  /// (..., num_heads, D) then. Only with NormKind::Layer. Not of heads unless set.
  TORCH_ARG(std::optional<int64_t>, num_heads) = std::nullopt;

  POSENC_FIELDS(TransformerNormOptions, d_model_, kind_, eps_, bias_, elementwise_affine_,
                num_heads_);
};

/// A norm of a Transformer layer, whose kind is an option: LayerNorm, RMSNorm or neither.
///
/// x: (..., D)  ->  (..., D).
///
/// ```cpp
/// posenc::TransformerNorm norm(posenc::TransformerNormOptions(32).kind(posenc::NormKind::RMS));
/// torch::Tensor x = norm->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `weight` (D), initialised to ones, or to zeros with the kinds that add one to it; `bias`
/// (D), initialised to zeros; both (num_heads, D) with num_heads.
///
/// Errors: those of LayerNorm and RMSNorm.
///
/// Source: torch.nn.LayerNorm; in transformers 5.23 `LlamaRMSNorm`, `Gemma3RMSNorm`,
/// `NemotronLayerNorm1P`, `CohereLayerNorm` and MobileBERT's `NoNorm`.
class TransformerNormImpl : public Cloneable<TransformerNormImpl> {
 public:
  /// A layer norm.
  explicit TransformerNormImpl(int64_t d_model)
      : TransformerNormImpl(TransformerNormOptions(d_model)) {}
  /// A module with the given options.
  explicit TransformerNormImpl(TransformerNormOptions options_);

  void reset() override;
  /// Sets the weight and the bias to their initial values.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns x normalised.
  torch::Tensor forward(const torch::Tensor& x);

  TransformerNormOptions options;  ///< the options given to the constructor
  torch::Tensor weight;            ///< (D), undefined with elementwise_affine(false)
  torch::Tensor bias;              ///< (D), undefined with bias(false) as well, and in an RMS norm
};

TORCH_MODULE(TransformerNorm);

}  // namespace posenc
