// The frozen layers of the modules' layers.

#include "inference/bottleneck_layers.h"
#include "inference/check_freezable.h"
#include "inference/layers.h"
#include "nn/transformer/layer_parts.h"

namespace posenc::inference {
namespace {

Projection linear(const torch::nn::Linear& module, GemmSelector& gemm) {
  return {module->weight, module->bias, gemm.choose(module->weight)};
}

// lambda1 * (W x + b) is (lambda1 W) x + lambda1 b.
Projection scaled(const torch::nn::Linear& module, const LayerScale& scale, GemmSelector& gemm) {
  if (scale.is_empty()) return linear(module, gemm);
  const at::Tensor& factors = scale->lambda1;
  const at::Tensor weight = module->weight * factors.unsqueeze(1);
  return {weight, module->bias.defined() ? module->bias * factors : module->bias,
          gemm.choose(weight)};
}

// Projects with rows part * D .. (part + count) * D of a decoder's in-projection of queries, keys
// and values.
Projection in_projection(const MultiheadAttention& module, int64_t part, int64_t count,
                         GemmSelector& gemm) {
  const int64_t width = module->options.embed_dim();
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, part * width, count * width) : whole;
  };
  const at::Tensor weight = rows(module->in_proj_weight);
  return {weight, rows(module->in_proj_bias), gemm.choose(weight)};
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
                const LayerScale& scale, GemmSelector& gemm) {
  return post ? linear(module, gemm) : scaled(module, scale, gemm);
}

FeedForward feed_forward_of(const TransformerEncoderLayerImpl& layer, GemmSelector& gemm) {
  return {linear(layer.linear1, gemm),
          last(layer.linear2, layer.post_norm2, layer.layer_scale2, gemm),
          layer.options.activation(), layer.options.feed_forward() == posenc::FeedForward::Gated};
}

EncoderLayer convolutional_layer(const TransformerEncoderLayerImpl& layer, GemmSelector& gemm) {
  const ConvolutionalAttentionImpl& own = *layer.conv_attn;
  const int64_t heads = own.options.num_heads(), head_dim = own.options.embed_dim() / (2 * heads);
  return {
      .convolution = Convolution{own.depthwise_weight.t().contiguous(), linear(own.pointwise, gemm),
                                 linear(own.kernel, gemm), linear(own.conv_out, gemm), heads,
                                 own.options.conv_kernel_size()},
      .sizes = {heads, heads, head_dim},
      .in_proj = {own.in_proj_weight, own.in_proj_bias, gemm.choose(own.in_proj_weight)},
      .out_proj = linear(own.out_proj, gemm),
      .score_scale = score_scale(head_dim),
      .feed_forward = feed_forward_of(layer, gemm)};
}

EncoderLayer encoder_layer(const TransformerEncoderLayerImpl& layer, GemmSelector& gemm,
                           std::vector<Rotation>& rotations) {
  if (layer.options.mixing() == Mixing::Fourier) {
    return {.is_fourier = true, .feed_forward = feed_forward_of(layer, gemm)};
  }
  if (layer.options.mixing() == Mixing::Convolution) return convolutional_layer(layer, gemm);
  const MultiheadAttentionImpl& attention = *layer.self_attn;
  const HeadSizes sizes = HeadSizes::of(attention.options);
  const double scale = attention.options.scale().value_or(score_scale(sizes.head_dim));
  return {
      .sizes = sizes,
      .in_proj = {attention.in_proj_weight, attention.in_proj_bias,
                  gemm.choose(attention.in_proj_weight)},
      .out_proj = last(attention.out_proj, layer.post_norm1, layer.layer_scale1, gemm),
      .query_norm = Norm(attention.q_norm),
      .key_norm = Norm(attention.k_norm),
      .rotation = add_rotation(rotations, attention.rotary, sizes),
      .score_scale = static_cast<float>(scale),
      .window = layer.options.window(),
      .feed_forward = feed_forward_of(layer, gemm),
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

EncoderStack::EncoderStack(const TransformerEncoderImpl& encoder, GemmSelector& gemm) {
  const auto& options = encoder.options.layer();
  norm_first = options.norm_first();
  num_heads = heads = options.num_heads();
  width = options.d_model();
  Norms norms(options.norm_first(), encoder.norm);
  // A layer that runs several times appears several times, with the same weights.
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    auto& layer = layer_of<TransformerEncoderLayerImpl>("TransformerEncoder", encoder.layers, i);
    layers.push_back(encoder_layer(layer, gemm, rotations));
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
                                                  const std::string& prefix, GemmSelector& gemm) {
  check_freezable(encoder, prefix);
  if (encoder.options.layer().bottleneck())
    return std::make_unique<BottleneckLayers>(encoder, gemm);
  return std::make_unique<EncoderStack>(encoder, gemm);
}

DecoderStack freeze_stack(const TransformerDecoderImpl& decoder, const std::string& prefix,
                          GemmSelector& gemm) {
  check_freezable(decoder, prefix);
  const auto& options = decoder.options.layer();
  DecoderStack stack{options.norm_first(), options.num_heads(), options.d_model(), {}, {}, {}};
  Norms norms(options.norm_first(), decoder.norm);
  for (size_t i = 0; i < decoder.layers->size(); ++i) {
    auto& layer = layer_of<TransformerDecoderLayerImpl>("TransformerDecoder", decoder.layers, i);
    stack.layers.push_back(
        {in_projection(layer.self_attn, 0, 3, gemm),
         scaled(layer.self_attn->out_proj, layer.layer_scale1, gemm),
         in_projection(layer.multihead_attn, 0, 1, gemm),
         in_projection(layer.multihead_attn, 1, 2, gemm),
         scaled(layer.multihead_attn->out_proj, layer.layer_scale2, gemm),
         {linear(layer.linear1, gemm), scaled(layer.linear2, layer.layer_scale3, gemm),
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
