#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// The rows of relative positions that the TransformerXLAttentions of a stack project.
///
/// x: (B, L, D)  ->  (G, 2 L - 1, D), the rows of positions L - 1, ..., 1 - L: G is 1, or 2 with
/// bi_data, or B in training with dropout, which each sequence then has of its own.
///
/// ```cpp
/// const posenc::TransformerXLOptions options(posenc::SinusoidOptions(/*dim=*/32));
/// const auto layer = posenc::TransformerLayerOptions(32, /*num_heads=*/4).transformer_xl(options);
/// posenc::TransformerXLPositions positions(layer);
/// torch::Tensor table = positions->forward(torch::randn({2, 5, 32}));
/// ```
///
/// Keys: with mask_embedding `mask_emb` (1, 1, D), initialised from N(0, 0.02), which forward()
/// does not use.
///
/// Errors: c10::ValueError for options without Transformer-XL attention, and for an odd B with
/// bi_data.
///
/// Source: `XLNetModel.relative_positional_encoding` in transformers 5.23.
class TransformerXLPositionsImpl : public Cloneable<TransformerXLPositionsImpl> {
 public:
  /// A module with the options of a layer, whose Transformer-XL attention has to be set.
  explicit TransformerXLPositionsImpl(TransformerLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the rows for sequences of the sizes, the dtype and the device of x.
  torch::Tensor forward(const torch::Tensor& x);

  TransformerLayerOptions options;      ///< the options given to the constructor
  torch::Tensor mask_emb;               ///< (1, 1, D), undefined without mask_embedding
  torch::nn::Dropout dropout{nullptr};  ///< of the rows
};

TORCH_MODULE(TransformerXLPositions);

}  // namespace posenc
