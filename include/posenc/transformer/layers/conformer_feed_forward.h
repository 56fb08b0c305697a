#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// One of the two feed-forward networks of a ConformerEncoderLayer, which adds half of it:
/// linear2(activation(linear1(norm(x)))).
///
/// x: (B, L, D)  ->  (B, L, D).
///
/// ```cpp
/// posenc::ConformerFeedForward network(posenc::TransformerLayerOptions(32, 4).d_ff(64));
/// torch::Tensor y = network->forward(torch::randn({2, 5, 32}));  // (2, 5, 32)
/// ```
///
/// Keys: `norm.*`, `linear1.*`, `linear2.*`.
///
/// Errors: those of torch::nn::Linear.
///
/// Source: `Wav2Vec2ConformerFeedForward` in transformers 5.23.
class ConformerFeedForwardImpl : public Cloneable<ConformerFeedForwardImpl> {
 public:
  /// A module with the options of a layer.
  explicit ConformerFeedForwardImpl(TransformerLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the network of x.
  torch::Tensor forward(const torch::Tensor& x);

  TransformerLayerOptions options;      ///< the options given to the constructor
  TransformerNorm norm{nullptr};        ///< of x
  torch::nn::Linear linear1{nullptr},   ///< (D) to (d_ff)
      linear2{nullptr};                 ///< (d_ff) to (D)
  torch::nn::Dropout dropout{nullptr},  ///< after the activation
      dropout2{nullptr};                ///< of the result
};

TORCH_MODULE(ConformerFeedForward);

}  // namespace posenc
