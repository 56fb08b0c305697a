// The frozen layers of the modules' layers.

#include <map>

#include "inference/bottleneck_layers.h"
#include "inference/check_freezable.h"
#include "inference/disentangled_layers.h"
#include "inference/layers.h"
#include "nn/transformer/layer_parts.h"

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

// Projects with rows part * D .. (part + count) * D of a decoder's in-projection of queries, keys
// and values.
Projection in_projection(const MultiheadAttention& module, int64_t part, int64_t count,
                         WeightConverter& convert) {
  const int64_t width = module->options.embed_dim();
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, part * width, count * width) : whole;
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
                           std::vector<Rotation>& rotations) {
  if (layer.options.mixing() == Mixing::Fourier) {
    return {.is_fourier = true, .feed_forward = feed_forward_of(layer, convert)};
  }
  if (layer.options.mixing() == Mixing::Convolution) return convolutional_layer(layer, convert);
  const MultiheadAttentionImpl& attention = *layer.self_attn;
  const HeadSizes sizes = HeadSizes::of(attention.options);
  const double scale = attention.options.scale().value_or(score_scale(sizes.head_dim));
  return {
      .sizes = sizes,
      .in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias),
      .out_proj = last(attention.out_proj, layer.post_norm1, layer.layer_scale1, convert),
      .query_norm = Norm(attention.q_norm),
      .key_norm = Norm(attention.k_norm),
      .rotation = add_rotation(rotations, attention.rotary, sizes),
      .score_scale = static_cast<float>(scale),
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
  Norms(bool norm_first, const TransformerNorm& last) : norm_first_(norm_first), last_(last) {}
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

EncoderStack::EncoderStack(const TransformerEncoderImpl& encoder, WeightConverter& convert) {
  const auto& options = encoder.options.layer();
  norm_first = options.norm_first();
  num_heads = heads = options.num_heads();
  width = options.d_model();
  Norms norms(options.norm_first(), encoder.norm);
  // A layer that runs several times appears several times, with the same weights.
  std::map<size_t, size_t> first_of;
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    auto& layer = layer_of<TransformerEncoderLayerImpl>("TransformerEncoder", encoder.layers, i);
    const auto [first, is_new] = first_of.emplace(i, layers.size());
    layers.push_back(is_new ? encoder_layer(layer, convert, rotations)
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
  return std::make_unique<EncoderStack>(encoder, convert);
}

DecoderStack freeze_stack(const TransformerDecoderImpl& decoder, const std::string& prefix,
                          WeightConverter& convert) {
  check_freezable(decoder, prefix);
  const auto& options = decoder.options.layer();
  DecoderStack stack{options.norm_first(), options.num_heads(), options.d_model(), {}, {}, {}};
  Norms norms(options.norm_first(), decoder.norm);
  for (size_t i = 0; i < decoder.layers->size(); ++i) {
    auto& layer = layer_of<TransformerDecoderLayerImpl>("TransformerDecoder", decoder.layers, i);
    stack.layers.push_back(
        {in_projection(layer.self_attn, 0, 3, convert),
         scaled(layer.self_attn->out_proj, layer.layer_scale1, convert),
         in_projection(layer.multihead_attn, 0, 1, convert),
         in_projection(layer.multihead_attn, 1, 2, convert),
         scaled(layer.multihead_attn->out_proj, layer.layer_scale2, convert),
         {linear(layer.linear1, convert), scaled(layer.linear2, layer.layer_scale3, convert),
          layer.options.activation()},
         {},
         {},
         {}});
    norms.add(layer.norm1);
    norms.add(layer.norm2);
    norms.add(layer.norm3);
  }
  norms.assign<DecoderLayer>(stack, {&DecoderLayer::after_attention, &DecoderLayer::after_cross,
                                     &DecoderLayer::after_feed_forward});
  return stack;
}

}  // namespace posenc::inference
