#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include "posenc/core/cloneable.h"
#include "posenc/nn/transformer/transformer_encoder_layer.h"

namespace posenc {

struct TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayerOptions layer, int64_t num_layers)
      : layer_(layer), num_layers_(num_layers) {}

  TORCH_ARG(TransformerEncoderLayerOptions, layer);
  TORCH_ARG(int64_t, num_layers);
  /// A last norm, behind all layers; pre-norm stacks need it.
  TORCH_ARG(bool, norm) = false;
};

/// num_layers encoder layers, one behind the other, and perhaps a last norm.
///
/// x: (B, L, D)  ->  (B, L, D); (L, B, D) with the layers' batch_first(false).
/// Keys: `layers.0.*`, `layers.1.*`, ... (TransformerEncoderLayer), `norm.*`. Each layer draws its
/// own weights; torch.nn.TransformerEncoder copies those of one layer. The mask is resolved once.
/// Errors: functional::multihead_attention(). Source: torch.nn.TransformerEncoder.
class TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  explicit TransformerEncoderImpl(TransformerEncoderOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {});

  TransformerEncoderOptions options;
  torch::nn::ModuleList layers{nullptr};
  LayerNorm norm{nullptr};  ///< with .norm(true)

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())})

 private:
  TransformerEncoderLayerImpl& layer(size_t i) const;
};

TORCH_MODULE(TransformerEncoder);

}  // namespace posenc
