// Mixers of modules.

#include "inference/layers/freeze_mixers.h"

#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "inference/layers/freeze_parts.h"
#include "transformer/attention/position_projections.h"

namespace posenc::inference {
namespace {

template <typename Kind, typename Step>
Block block_of(Kind& kind, Step step, const TransformerNorm& norm) {
  kind.steps.push_back(std::move(step));
  return {.mixers = &kind, .step = kind.steps.size() - 1, .after = Norm(norm)};
}

// The rotations of the layers so far, one for all that are the same; returns that of a layer.
std::optional<std::size_t> add_rotation(std::vector<Rotation>& all, const RotaryEmbedding& rotary,
                                        const HeadSizes& sizes) {
  if (!rotary) return std::nullopt;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_of(*rotary, sizes)) return i;
  }
  all.emplace_back(*rotary, sizes);
  TORCH_CHECK_VALUE(all.front().is_axial() == all.back().is_axial(),
                    "[freeze] the rotary embeddings of all layers must rotate by one position of a "
                    "token, or all by one for each axis. Got some of either");
  return all.size() - 1;
}

AttentionStep convolutional_attention(const ConvolutionalAttentionImpl& own,
                                      WeightConverter& convert) {
  const int64_t heads = own.options.num_heads(), head_dim = own.options.embed_dim() / (2 * heads);
  convert.derived(own.depthwise_weight, static_cast<int64_t>(own.depthwise_weight.nbytes()));
  return {.sizes = {heads, heads, head_dim},
          .score_scale = score_scale(head_dim),
          .in_proj = convert.projection(own.in_proj_weight, own.in_proj_bias),
          .out_proj = linear(own.out_proj, convert),
          .convolution =
              Convolution{own.depthwise_weight.t().contiguous(), linear(own.pointwise, convert),
                          linear(own.kernel, convert), linear(own.conv_out, convert), heads,
                          own.options.conv_kernel_size()}};
}

AttentionStep attention_of(const TransformerEncoderLayerImpl& layer,
                           const TransformerEncoderImpl& encoder, AttentionMixers& all,
                           WeightConverter& convert) {
  if (layer.options.mixing() == Mixing::Convolution)
    return convolutional_attention(*layer.conv_attn, convert);
  const MultiheadAttentionImpl& attention = *layer.self_attn;
  const HeadSizes sizes = HeadSizes::of(attention.options);
  return {.sizes = sizes,
          .score_scale = scale_of(attention),
          .in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias),
          .out_proj = linear(attention.out_proj, convert,
                             scale_without(layer.post_norm1, layer.layer_scale1)),
          .query_norm = Norm(attention.q_norm),
          .key_norm = Norm(attention.k_norm),
          .rotation = add_rotation(all.rotations, attention.rotary, sizes),
          .relative = relative_of(all.relative_biases, encoder.relative_attention_bias,
                                  attention.relative_attention_bias),
          .grid_bias = all.grid_biases.add(encoder.grid_position_bias, layer.grid_position_bias),
          .window = layer.options.window()};
}

// The rows (H, R, Dh) of a table, times the scale of the scores. By posenc's own product, whose
// bits do not depend on the number of threads.
at::Tensor position_heads(const at::Tensor& table, const PositionProjection& projection,
                          int64_t heads, float scale) {
  if (!projection.weight.defined()) return {};
  const Projection own(projection.weight, projection.bias, kAlwaysNative);
  return (own.rows(table.detach()) * scale).unflatten(-1, {heads, -1}).transpose(0, 1).contiguous();
}

DisentangledStep disentangled_of(const DisentangledAttentionImpl& attention,
                                 const at::Tensor& table, std::optional<int64_t> window,
                                 WeightConverter& convert) {
  const int64_t heads = attention.options.num_heads();
  const auto scale = static_cast<float>(attention.scale());
  const auto [keys, queries] = position_projections(attention, table);
  return {{.sizes = {heads, heads, attention.options.embed_dim() / heads},
           .score_scale = scale,
           .in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias),
           .out_proj = linear(attention.out_proj, convert),
           .window = window},
          position_heads(table, keys, heads, scale),
          position_heads(table, queries, heads, scale)};
}

// The weight (D, D / g, K) of a convolution as that of a linear layer (D, K D).
at::Tensor dense_weight(const torch::nn::Conv1dImpl& conv) {
  const int64_t width = conv.weight.size(0), part = conv.weight.size(1), size = conv.weight.size(2);
  at::Tensor dense = at::zeros({width, size, width}, conv.weight.options());
  const int64_t groups = width / part;
  for (int64_t g = 0; g < groups; ++g) {
    dense.narrow(0, g * part, part)
        .narrow(2, g * part, part)
        .copy_(conv.weight.detach().narrow(0, g * part, part).transpose(1, 2));
  }
  return dense.view({width, size * width});
}

// The projection to queries with their content_bias, keys and values.
Projection transformer_xl_in_proj(const TransformerXLAttentionImpl& attention,
                                  WeightConverter& convert) {
  const int64_t width = attention.options.embed_dim();
  at::Tensor bias = attention.in_proj_bias.defined() ? attention.in_proj_bias.detach().clone()
                                                     : at::zeros({3 * width}, at::kFloat);
  convert.derived(attention.in_proj_bias, 0);
  convert.derived(attention.content_bias, static_cast<int64_t>(bias.nbytes()));
  bias.narrow(0, 0, width).add_(attention.content_bias.detach().view({width}));
  return convert.projection(attention.in_proj_weight, bias);
}

ConformerConvolutionStep convolution_of(const ConformerConvolutionImpl& conv,
                                        WeightConverter& convert) {
  const torch::nn::BatchNorm1dImpl& norm = *conv.batch_norm;
  const at::Tensor factors =
      norm.weight.detach() * at::rsqrt(norm.running_var.detach() + norm.options.eps());
  convert.derived(conv.depthwise_weight, static_cast<int64_t>(conv.depthwise_weight.nbytes()));
  convert.derived(norm.bias, static_cast<int64_t>(norm.bias.nbytes()));
  for (const at::Tensor& source : {norm.weight, norm.running_mean, norm.running_var})
    convert.derived(source, 0);
  return {.pointwise1 = linear(conv.pointwise1, convert),
          .pointwise2 = linear(conv.pointwise2, convert),
          .depthwise = (conv.depthwise_weight.detach() * factors.unsqueeze(1)).t().contiguous(),
          .bias = norm.bias.detach() - norm.running_mean.detach() * factors,
          .activation = conv.options.activation()};
}

// Queries and keys have a projection of their own where their input is rotated.
AttentionStep rotated_attention(const ConformerEncoderLayerImpl& layer, AttentionMixers& all,
                                WeightConverter& convert) {
  const MultiheadAttentionImpl& attention = *layer.self_attn;
  const HeadSizes sizes = HeadSizes::of(attention.options);
  const int64_t width = layer.options.d_model();
  AttentionStep step = {.sizes = sizes,
                        .score_scale = scale_of(attention),
                        .in_proj = {},
                        .out_proj = linear(attention.out_proj, convert)};
  if (!layer.rotary) {
    step.in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias);
    return step;
  }
  all.rotates_input = true;
  step.rotation = add_rotation(all.rotations, layer.rotary, {sizes.heads, 0, sizes.head_dim});
  step.in_proj = in_projection(attention, 0, 2 * width, convert);
  step.values = in_projection(attention, 2 * width, width, convert);
  return step;
}

}  // namespace

Block attention_block(const TransformerEncoderLayerImpl& layer,
                      const TransformerEncoderImpl& encoder, AttentionMixers& all,
                      WeightConverter& convert) {
  return block_of(all, attention_of(layer, encoder, all, convert), layer.norm1);
}

Block disentangled_block(const TransformerEncoderLayerImpl& layer, const at::Tensor& table,
                         DisentangledMixers& all, WeightConverter& convert) {
  return block_of(all,
                  disentangled_of(*layer.disentangled_attn, table, layer.options.window(), convert),
                  layer.norm1);
}

Block transformer_xl_block(const TransformerXLAttentionImpl& attention, TransformerXLMixers& all,
                           const TransformerNorm& norm, std::optional<int64_t> window,
                           WeightConverter& convert) {
  for (const at::Tensor& source :
       {attention.position_bias, attention.segment_bias, attention.segment_embed}) {
    if (source.defined()) convert.derived(source, static_cast<int64_t>(source.nbytes()));
  }
  const int64_t heads = attention.options.num_heads();
  const auto scale = static_cast<float>(attention.scale());
  const at::Tensor content = attention.content_bias.detach();
  TransformerXLStep step = {{.sizes = {heads, heads, attention.options.embed_dim() / heads},
                             .score_scale = scale,
                             .in_proj = transformer_xl_in_proj(attention, convert),
                             .out_proj = linear(attention.out_proj, convert),
                             .window = window},
                            (attention.position_bias.detach() - content).contiguous(),
                            {},
                            {}};
  if (attention.segment_embed.defined()) {
    step.segment_bias = (attention.segment_bias.detach() - content).contiguous();
    step.segment_keys =
        (attention.segment_embed.detach().transpose(0, 1) * attention.scale()).contiguous();
  }
  all.distances.add(attention.position_proj->weight, heads, scale);
  return block_of(all, std::move(step), norm);
}

Block conformer_block(const ConformerEncoderLayerImpl& layer, AttentionMixers& all,
                      WeightConverter& convert) {
  return block_of(all, rotated_attention(layer, all, convert), layer.norm1);
}

Block conformer_convolution_block(const ConformerConvolutionImpl& conv,
                                  ConformerConvolutionMixers& all, WeightConverter& convert) {
  return block_of(all, convolution_of(conv, convert), conv.norm);
}

Block convolution_beside_block(const ConvolutionBesideImpl& beside, ConvolutionBesideMixers& all,
                               WeightConverter& convert) {
  const DisentangledOptions& own = *beside.options.disentangled();
  const at::Tensor dense = dense_weight(*beside.conv);
  convert.derived(beside.conv->weight, static_cast<int64_t>(dense.nbytes()));
  all.projection = convert.float_projection(dense, beside.conv->bias.detach());
  all.size = own.conv_kernel_size();
  all.activation = own.conv_act();
  return {.mixers = &all, .after = Norm(beside.norm)};
}

}  // namespace posenc::inference
