// The frozen layers of the modules' layers.

#include <ATen/ops/scalar_tensor.h>

#include <map>

#include "inference/layers/bottleneck_layers.h"
#include "inference/layers/check_freezable.h"
#include "inference/layers/conformer_layers.h"
#include "inference/layers/disentangled_layers.h"
#include "inference/layers/layers.h"
#include "inference/layers/transformer_xl_layers.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

Projection linear(const torch::nn::Linear& module, WeightConverter& convert) {
  return convert.projection(module->weight, module->bias);
}

// lambda1 * (W x + b) is (lambda1 W) x + lambda1 b.
Projection scaled(const torch::nn::Linear& module, const LayerScale& scale,
                  WeightConverter& convert) {
  if (scale.is_empty()) return linear(module, convert);
  const at::Tensor& factors = scale->lambda1;
  const at::Tensor weight = module->weight * factors.unsqueeze(1);
  return convert.projection(weight, module->bias.defined() ? module->bias * factors : module->bias,
                            module->weight);
}

// Projects with some of the rows of a decoder's in-projection of queries, keys and values.
Projection in_projection(const MultiheadAttention& module, int64_t first, int64_t count,
                         WeightConverter& convert) {
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, first, count) : whole;
  };
  return convert.projection(rows(module->in_proj_weight), rows(module->in_proj_bias),
                            module->in_proj_weight);
}

// The rotations of the layers so far, one for all that are the same; returns that of a layer.
std::optional<size_t> add_rotation(std::vector<Rotation>& all, const RotaryEmbedding& rotary,
                                   const HeadSizes& sizes) {
  if (!rotary) return std::nullopt;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_of(*rotary, sizes)) return i;
  }
  all.emplace_back(*rotary, sizes);
  TORCH_CHECK_VALUE(all.front().is_axial() == all.back().is_axial(),
                    "[freeze] the rotary embeddings of all layers must rotate by one position of a "
                    "token, or all by one for each axis. Got some of either");
  return all.size() - 1;
}

// The relative bias of a layer: that of the stack, or its own; each is in `all` once.
std::optional<size_t> relative_of(std::vector<RelativeBias>& all,
                                  const RelativePositionBias& shared,
                                  const RelativePositionBias& own) {
  const RelativePositionBias& bias = shared ? shared : own;
  return bias ? std::optional<size_t>(add_bias(all, *bias)) : std::nullopt;
}

float scale_of(const MultiheadAttentionImpl& attention) {
  const int64_t head_dim = HeadSizes::of(attention.options).head_dim;
  return static_cast<float>(attention.options.scale().value_or(score_scale(head_dim)));
}

// What a block adds is normalised by `post`, which then takes the layer scale, or else scaled.
Projection last(const torch::nn::Linear& module, const TransformerNorm& post,
                const LayerScale& scale, WeightConverter& convert) {
  return post ? linear(module, convert) : scaled(module, scale, convert);
}

FeedForward feed_forward_of(const TransformerEncoderLayerImpl& layer, WeightConverter& convert) {
  return {linear(layer.linear1, convert),
          last(layer.linear2, layer.post_norm2, layer.layer_scale2, convert),
          layer.options.activation(), layer.options.feed_forward() == posenc::FeedForward::Gated};
}

EncoderLayer convolutional_layer(const TransformerEncoderLayerImpl& layer,
                                 WeightConverter& convert) {
  const ConvolutionalAttentionImpl& own = *layer.conv_attn;
  const int64_t heads = own.options.num_heads(), head_dim = own.options.embed_dim() / (2 * heads);
  convert.derived(own.depthwise_weight, static_cast<int64_t>(own.depthwise_weight.nbytes()));
  return {.convolution =
              Convolution{own.depthwise_weight.t().contiguous(), linear(own.pointwise, convert),
                          linear(own.kernel, convert), linear(own.conv_out, convert), heads,
                          own.options.conv_kernel_size()},
          .sizes = {heads, heads, head_dim},
          .in_proj = convert.projection(own.in_proj_weight, own.in_proj_bias),
          .out_proj = linear(own.out_proj, convert),
          .score_scale = score_scale(head_dim),
          .feed_forward = feed_forward_of(layer, convert)};
}

EncoderLayer encoder_layer(const TransformerEncoderLayerImpl& layer, WeightConverter& convert,
                           const RelativePositionBias& shared, const GridPositionBias& grid_bias,
                           EncoderStack& stack) {
  if (layer.options.mixing() == Mixing::Fourier) {
    return {.is_fourier = true, .feed_forward = feed_forward_of(layer, convert)};
  }
  if (layer.options.mixing() == Mixing::Convolution) return convolutional_layer(layer, convert);
  const MultiheadAttentionImpl& attention = *layer.self_attn;
  const HeadSizes sizes = HeadSizes::of(attention.options);
  return {
      .sizes = sizes,
      .in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias),
      .out_proj = last(attention.out_proj, layer.post_norm1, layer.layer_scale1, convert),
      .query_norm = Norm(attention.q_norm),
      .key_norm = Norm(attention.k_norm),
      .rotation = add_rotation(stack.rotations, attention.rotary, sizes),
      .score_scale = scale_of(attention),
      .relative = relative_of(stack.relative_biases, shared, attention.relative_attention_bias),
      .grid_bias = stack.grid_biases.add(grid_bias, layer.grid_position_bias),
      .window = layer.options.window(),
      .feed_forward = feed_forward_of(layer, convert),
      .post_attention = Norm(layer.post_norm1, layer.layer_scale1),
      .post_feed_forward = Norm(layer.post_norm2, layer.layer_scale2),
  };
}

// Collects the norms of all blocks, in order, and the stack's own, and assigns to each block the
// norm that follows it.
class Norms {
 public:
  Norms(bool norm_first, const TransformerNorm& last, double scale = 1.0)
      : norm_first_(norm_first), last_(last) {
    if (scale == 1.0) return;
    TORCH_CHECK_VALUE(last,
                      "[freeze] the decoder must have a final norm, whose result "
                      "output_scale multiplies. Got no norm");
    last_.multiply(at::scalar_tensor(scale, at::kFloat));
  }
  void add(const TransformerNorm& norm) { norms_.push_back(Norm(norm)); }

  template <typename Layer>
  void assign(Stack<Layer>& stack, std::vector<Norm Layer::*> blocks) {
    if (norm_first_) {
      stack.entry = norms_.front();
      norms_.erase(norms_.begin());
      norms_.push_back(last_);
    } else {
      stack.last = last_;
    }
    auto norm = norms_.begin();
    for (Layer& layer : stack.layers)
      for (const auto block : blocks) layer.*block = *norm++;
  }

 private:
  bool norm_first_;
  Norm last_;
  std::vector<Norm> norms_;
};

}  // namespace

EncoderStack::EncoderStack(const TransformerEncoderImpl& encoder, WeightConverter& convert)
    : FrozenLayers(encoder) {
  const auto& options = encoder.options.layer();
  norm_first = options.norm_first();
  heads = options.num_heads();
  width = options.d_model();
  alibi = alibi_of(encoder.options.alibi(), heads);
  counts_tokens = alibi && alibi->counts_tokens;
  Norms norms(options.norm_first(), encoder.norm);
  // A layer that runs several times appears several times, with the same weights.
  std::map<size_t, size_t> first_of;
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    auto& layer = layer_of<TransformerEncoderLayerImpl>("TransformerEncoder", encoder.layers, i);
    const auto [first, is_new] = first_of.emplace(i, layers.size());
    layers.push_back(is_new ? encoder_layer(layer, convert, encoder.relative_attention_bias,
                                            encoder.grid_position_bias, *this)
                            : EncoderLayer(layers[first->second]));
    needs_key_masks |= layers.back().is_fourier;
    sees_padding |= layers.back().is_fourier || layers.back().convolution.has_value();
    norms.add(layer.norm1);
    norms.add(layer.norm2);
  }
  is_axial = !rotations.empty() && rotations.front().is_axial();
  norms.assign<EncoderLayer>(*this,
                             {&EncoderLayer::after_attention, &EncoderLayer::after_feed_forward});
}

std::unique_ptr<const FrozenLayers> freeze_layers(const TransformerEncoderImpl& encoder,
                                                  const std::string& prefix,
                                                  WeightConverter& convert) {
  check_freezable(encoder, prefix);
  if (encoder.options.layer().bottleneck())
    return std::make_unique<BottleneckLayers>(encoder, convert);
  if (encoder.options.layer().disentangled())
    return std::make_unique<DisentangledLayers>(encoder, convert);
  if (encoder.options.layer().conformer())
    return std::make_unique<ConformerLayers>(encoder, convert);
  if (encoder.options.layer().transformer_xl())
    return std::make_unique<TransformerXLLayers>(encoder, convert);
  return std::make_unique<EncoderStack>(encoder, convert);
}

DecoderStack freeze_stack(const TransformerDecoderImpl& decoder, const std::string& prefix,
                          WeightConverter& convert, double output_scale) {
  check_freezable(decoder, prefix);
  const auto& options = decoder.options.layer();
  DecoderStack stack;
  stack.norm_first = options.norm_first();
  stack.heads = options.num_heads();
  stack.width = options.d_model();
  stack.alibi = alibi_of(decoder.options.alibi(), stack.heads);
  Norms norms(options.norm_first(), decoder.norm, output_scale);
  for (size_t i = 0; i < decoder.layers->size(); ++i) {
    auto& layer = layer_of<TransformerDecoderLayerImpl>("TransformerDecoder", decoder.layers, i);
    const HeadSizes& sizes = stack.sizes = HeadSizes::of(layer.self_attn->options);
    stack.layers.push_back(
        {.in_proj = in_projection(layer.self_attn, 0, sizes.width(), convert),
         .out_proj = scaled(layer.self_attn->out_proj, layer.layer_scale1, convert),
         .query = in_projection(layer.multihead_attn, 0, sizes.query_width(), convert),
         .memory = in_projection(layer.multihead_attn, sizes.query_width(), 2 * sizes.kv_width(),
                                 convert),
         .cross_out = scaled(layer.multihead_attn->out_proj, layer.layer_scale2, convert),
         .feed_forward = {linear(layer.linear1, convert),
                          scaled(layer.linear2, layer.layer_scale3, convert),
                          layer.options.activation(),
                          layer.options.feed_forward() == posenc::FeedForward::Gated},
         .score_scale = scale_of(*layer.self_attn),
         .cross_score_scale = scale_of(*layer.multihead_attn),
         .relative = relative_of(stack.relative_biases, decoder.relative_attention_bias,
                                 layer.self_attn->relative_attention_bias)});
    norms.add(layer.norm1);
    norms.add(layer.norm2);
    norms.add(layer.norm3);
  }
  norms.assign<DecoderLayer>(stack, {&DecoderLayer::after_attention, &DecoderLayer::after_cross,
                                     &DecoderLayer::after_feed_forward});
  return stack;
}

}  // namespace posenc::inference
