#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc POSENC_EXPORT {

/// The table of relative positions that the DisentangledAttentions of a stack share.
///
/// ```cpp
/// const posenc::DisentangledOptions positions(/*max_relative_positions=*/16);
/// posenc::RelativeEmbeddings relative(
///     posenc::TransformerLayerOptions(32, 4).disentangled(positions));
/// torch::Tensor table = relative->forward();  // (32, 32)
/// ```
///
/// Keys: `weight` (R, D) with relative_attention, R being twice the span, initialised from
/// N(0, 1); `norm.*` (TransformerNorm) with norm_relative_embeddings.
///
/// Errors: c10::ValueError for options without disentangled attention.
///
/// Source: `DebertaV2Encoder.get_rel_embedding` in transformers 5.23.
class RelativeEmbeddingsImpl : public Cloneable<RelativeEmbeddingsImpl> {
 public:
  /// A module with the options of a layer, whose disentangled attention has to be set.
  explicit RelativeEmbeddingsImpl(TransformerLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the rows (R, D), normalised if there is a norm; undefined without relative_attention.
  torch::Tensor forward();

  TransformerLayerOptions options;  ///< the options given to the constructor
  torch::Tensor weight;             ///< (R, D), undefined without relative_attention
  TransformerNorm norm{nullptr};    ///< with norm_relative_embeddings
};

TORCH_MODULE(RelativeEmbeddings);

/// The convolution beside the first layer of a stack: norm(out + act(conv(x))), where the rows of
/// padding are zeros.
///
/// x, out: (B, L, D), the input and the output of the layer  ->  (B, L, D).
///
/// ```cpp
/// const auto positions = posenc::DisentangledOptions(16).conv_kernel_size(3);
/// posenc::ConvolutionBeside conv(posenc::TransformerLayerOptions(32, 4).disentangled(positions));
/// torch::Tensor x = torch::randn({2, 5, 32});
/// torch::Tensor y = conv->forward(x, x);  // (2, 5, 32)
/// ```
///
/// Keys: `conv.weight` (D, D / conv_groups, K), `conv.bias` (D), `norm.*` (TransformerNorm).
///
/// Errors: c10::ValueError for options without a convolution, an even K, and groups that do not
/// divide D.
///
/// Source: `ConvLayer` of DeBERTa v2 in transformers 5.23.
class ConvolutionBesideImpl : public Cloneable<ConvolutionBesideImpl> {
 public:
  /// A module with the options of a layer, whose disentangled attention has to be set.
  explicit ConvolutionBesideImpl(TransformerLayerOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// Returns the sum, normalised. `kept` (B, L), bool, is false for padding; undefined: there is
  /// none.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& out,
                        const torch::Tensor& kept = {});

  TransformerLayerOptions options;      ///< the options given to the constructor
  torch::nn::Conv1d conv{nullptr};      ///< over tokens
  TransformerNorm norm{nullptr};        ///< of the sum
  torch::nn::Dropout dropout{nullptr};  ///< before the activation

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(torch::Tensor())})
};

TORCH_MODULE(ConvolutionBeside);

}  // namespace posenc
