#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "posenc/core/cloneable.h"
#include "posenc/nn/attention/multihead_attention.h"
#include "posenc/nn/transformer/layer_norm.h"
#include "posenc/nn/transformer/transformer_layer_options.h"

namespace posenc {

using TransformerEncoderLayerOptions = TransformerLayerOptions;

/// Self-attention A, then the two linear maps F, each around a residual:
/// x = norm1(x + A(x)); norm2(x + F(x)), or with norm_first x + A(norm1(x)), then x + F(norm2(x)).
///
/// x: (B, L, D)  ->  (B, L, D); (L, B, D) with batch_first(false).
/// Keys: `self_attn.*` (MultiheadAttention), `linear1.*` (d_ff, D), `linear2.*`, `norm1.*`,
/// `norm2.*`. The same seed gives PyTorch's weights. Errors: functional::multihead_attention().
/// Source: torch.nn.TransformerEncoderLayer.
class TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t num_heads)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, num_heads)) {}
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_);

  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward(const torch::Tensor& x, const AttentionMask& mask = {});

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  torch::nn::Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  torch::nn::Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(AttentionMask())})

 private:
  torch::Tensor attend(const torch::Tensor& x, const AttentionMask& mask);
  torch::Tensor feed_forward(const torch::Tensor& x);
};

TORCH_MODULE(TransformerEncoderLayer);

}  // namespace posenc
