#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <variant>
#include <vector>

#include "posenc/transformer/layers/conformer_encoder_layer.h"
#include "posenc/transformer/layers/transformer_encoder_layer.h"

// What the layers of encoders compute, as lists of blocks: the modules run them with LibTorch's
// operations, and freeze() reads them. All parts are pointers to the modules in a layer's holders;
// null is none.

namespace posenc::blocks {

struct Attention {
  MultiheadAttentionImpl* attention;
  RotaryEmbeddingImpl* rotates_input = nullptr;  ///< of queries and keys, head by head
  GridPositionBiasImpl* grid_bias = nullptr;     ///< which is in the mask of a call
};
struct Fourier {};
struct Network {
  torch::nn::LinearImpl* wide;
  torch::nn::DropoutImpl* between;  ///< may be null
  torch::nn::LinearImpl* narrow;
  const TransformerLayerOptions* options;  ///< of which the activation and the gates are read
};
struct PerLayerInput {
  torch::nn::LinearImpl *gate, *projection;
  const TransformerLayerOptions* options;  ///< of which the activation is read
};
/// A pointer is a module that is called as it is. A ConformerConvolution has its own norm before it
/// and its own dropout.
using Step = std::variant<Attention, DisentangledAttentionImpl*, TransformerXLAttentionImpl*,
                          ConvolutionalAttentionImpl*, Fourier, ConformerConvolutionImpl*, Network,
                          PerLayerInput>;

/// x = output_factor * after(x + path(factor * scale(dropout(post(step(before(x))))))), where
/// `before` and `step` read what the block before has read if `is_parallel`.
struct Block {
  TransformerNormImpl* before = nullptr;
  Step step = {};
  TransformerNormImpl* post = nullptr;
  torch::nn::DropoutImpl* dropout = nullptr;
  LayerScaleImpl* scale = nullptr;
  double factor = 1.0;
  TransformerNormImpl* after = nullptr;
  bool residual_of_norm = false;              ///< before(x) is what it is added to, and not x
  bool is_parallel = false;                   ///< to the block before
  const at::Tensor* output_factor = nullptr;  ///< without `after`; null is 1
};

template <typename Holder>
auto* get(const Holder& holder) {
  return holder.is_empty() ? nullptr : holder.ptr().get();
}

/// That of a module with `linear1`, `dropout` and `linear2`.
template <typename Module>
Network network_of(const Module& module, const TransformerLayerOptions& options) {
  return {module.linear1.ptr().get(), module.dropout.ptr().get(), module.linear2.ptr().get(),
          &options};
}
template <typename Module>
Network network_of(const Module& module) {
  return network_of(module, module.options);
}

/// Visits the holders of a layer's attention, of which one has a module, or none.
template <typename Layer, typename Visit>
void visit_attentions(Layer& layer, Visit&& visit) {
  visit(layer.self_attn);
  visit(layer.transformer_xl_attn);
  visit(layer.disentangled_attn);
  visit(layer.conv_attn);
}

std::vector<Block> of(const TransformerEncoderLayerImpl& layer);
std::vector<Block> of(const ConformerEncoderLayerImpl& layer);

/// What a stack gives a layer in a call.
struct Call {
  const StackPositions& positions;
  const AttentionMask& mask;  ///< with the layer's window and grid bias
  const at::Tensor& position_ids;
  at::Tensor* weights;  ///< of the attention, unless null
  /// Unless null, x are the next tokens of a causal stack after those in it, and the mask is that
  /// of MultiheadAttention::step().
  KeyValueCache* cache = nullptr;
};
/// The blocks of a layer with these options, with autograd.
at::Tensor run(const std::vector<Block>& blocks, at::Tensor x, const Call& call,
               const TransformerLayerOptions& options, bool is_training);
/// narrow(dropout(activation(wide(x)))), gated if the options say so.
at::Tensor run(const Network& network, const at::Tensor& x);

}  // namespace posenc::blocks
