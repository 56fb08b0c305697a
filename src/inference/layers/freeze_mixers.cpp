// Frozen blocks of modules'.

#include "inference/layers/freeze_mixers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "inference/layers/freeze_parts.h"
#include "transformer/attention/position_projections.h"

namespace posenc::inference {
namespace {

// A projection is multiplied by the scale of what a block adds, unless a norm of that takes it.
const LayerScaleImpl* scale_of_weights(const blocks::Block& block) {
  return block.post == nullptr ? block.scale : nullptr;
}

template <typename Kind, typename Step>
Block block_of(Kind& kind, Step step) {
  kind.steps.push_back(std::move(step));
  return {.mixers = &kind, .step = kind.steps.size() - 1};
}

// The factors of what a block adds, as a norm.
Norm norm_of_factor(double factor, int64_t width) {
  Norm norm;
  norm.weight = at::full({width}, factor, at::kFloat);
  norm.bias = at::zeros({width}, at::kFloat);
  norm.kind = kernels::inference::NormKind::Affine;
  return norm;
}

// The rotations of the layers so far, one for all that are the same; returns that of a layer.
std::optional<std::size_t> add_rotation(std::vector<Rotation>& all,
                                        const RotaryEmbeddingImpl* rotary, const HeadSizes& sizes) {
  if (rotary == nullptr) return std::nullopt;
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
          .out_proj = linear(*own.out_proj, convert),
          .convolution =
              Convolution{own.depthwise_weight.t().contiguous(), linear(*own.pointwise, convert),
                          linear(*own.kernel, convert), linear(*own.conv_out, convert), heads,
                          own.options.conv_kernel_size()}};
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
           .out_proj = linear(*attention.out_proj, convert),
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
  return {.pointwise1 = linear(*conv.pointwise1, convert),
          .pointwise2 = linear(*conv.pointwise2, convert),
          .depthwise = (conv.depthwise_weight.detach() * factors.unsqueeze(1)).t().contiguous(),
          .bias = norm.bias.detach() - norm.running_mean.detach() * factors,
          .activation = conv.options.activation()};
}

}  // namespace

BlockFreezer::BlockFreezer(const TransformerEncoderImpl& encoder, BlockLayers& layers,
                           WeightConverter& convert)
    : encoder_(encoder),
      layers_(layers),
      convert_(convert),
      attentions_(layers.add<AttentionMixers>()),
      fourier_(layers.add<FourierMixers>()),
      convolutions_(layers.add<ConformerConvolutionMixers>()) {
  const TransformerLayerOptions& options = encoder.options.layer();
  layers.alibi = attentions_.alibi = alibi_of(encoder.options.alibi(), options.num_heads());
  layers.counts_tokens = attentions_.counts_tokens = layers.alibi && layers.alibi->counts_tokens;
  if (options.disentangled())
    disentangled_ = &layers.add<DisentangledMixers>(options.disentangled()->index());
  if (options.transformer_xl())
    transformer_xl_ = &layers.add<TransformerXLMixers>(*options.transformer_xl());
  if (encoder.shifted_positions)
    convert.derived(encoder.shifted_positions->mask_emb, 0);  // which no layer reads
  if (encoder.relative_embeddings) {
    table_ = encoder.relative_embeddings.ptr()->forward();
    leave_out(encoder.relative_embeddings.ptr().get());
  }
}

// The layers have rows of positions in place of what they are computed from.
void BlockFreezer::leave_out(const torch::nn::Module* module) {
  if (module == nullptr) return;
  for (const at::Tensor& parameter : module->parameters()) convert_.derived(parameter, 0);
}

Block BlockFreezer::operator()(const blocks::Block& block, const TransformerLayerOptions& layer) {
  Block frozen =
      std::visit([&](const auto& step) { return block_with(step, block, layer); }, block.step);
  frozen.post = block.factor == 1.0
                    ? Norm(block.post, block.scale)
                    : norm_of_factor(block.factor, encoder_.options.layer().d_model());
  if (block.before != nullptr) frozen.after = Norm(block.before);
  (layers_.norm_first() ? frozen.in_place : frozen.after) = Norm(block.after);
  return frozen;
}

// Queries and keys have a projection of their own where their input is rotated.
Block BlockFreezer::block_with(const blocks::Attention& own, const blocks::Block& block,
                               const TransformerLayerOptions& layer) {
  const MultiheadAttentionImpl& attention = *own.attention;
  const HeadSizes sizes = HeadSizes::of(attention.options);
  AttentionStep step = {
      .sizes = sizes,
      .score_scale = scale_of(attention),
      .in_proj = {},
      .out_proj = linear(*attention.out_proj, convert_, scale_of_weights(block)),
      .query_norm = Norm(attention.q_norm),
      .key_norm = Norm(attention.k_norm),
      .rotation = add_rotation(attentions_.rotations, blocks::get(attention.rotary), sizes),
      .relative = relative_of(attentions_.relative_biases, encoder_.relative_attention_bias,
                              attention.relative_attention_bias),
      .grid_bias =
          attentions_.grid_biases.add(blocks::get(encoder_.grid_position_bias), own.grid_bias),
      .window = layer.window()};
  if (own.rotates_input != nullptr) {
    const int64_t width = attention.options.embed_dim();
    attentions_.rotates_input = true;
    step.rotation =
        add_rotation(attentions_.rotations, own.rotates_input, {sizes.heads, 0, sizes.head_dim});
    step.in_proj = in_projection(attention, 0, 2 * width, convert_);
    step.values = in_projection(attention, 2 * width, width, convert_);
  } else {
    step.in_proj = convert_.projection(attention.in_proj_weight, attention.in_proj_bias);
  }
  layers_.is_axial = attentions_.is_axial();
  return block_of(attentions_, std::move(step));
}

Block BlockFreezer::block_with(const blocks::Disentangled& own, const blocks::Block&,
                               const TransformerLayerOptions& layer) {
  DisentangledStep step = disentangled_of(*own.attention, table_, layer.window(), convert_);
  for (const at::Tensor& rows : {step.position_keys, step.position_queries}) {
    if (rows.defined())
      convert_.derived(encoder_.relative_embeddings->weight, static_cast<int64_t>(rows.nbytes()));
  }
  leave_out(blocks::get(own.attention->pos_key));
  leave_out(blocks::get(own.attention->pos_query));
  return block_of(*disentangled_, std::move(step));
}

Block BlockFreezer::block_with(const blocks::TransformerXL& own, const blocks::Block&,
                               const TransformerLayerOptions& layer) {
  const TransformerXLAttentionImpl& attention = *own.attention;
  for (const at::Tensor& source :
       {attention.position_bias, attention.segment_bias, attention.segment_embed}) {
    if (source.defined()) convert_.derived(source, static_cast<int64_t>(source.nbytes()));
  }
  const int64_t heads = attention.options.num_heads();
  const auto scale = static_cast<float>(attention.scale());
  const at::Tensor content = attention.content_bias.detach();
  TransformerXLStep step = {{.sizes = {heads, heads, attention.options.embed_dim() / heads},
                             .score_scale = scale,
                             .in_proj = transformer_xl_in_proj(attention, convert_),
                             .out_proj = linear(*attention.out_proj, convert_),
                             .window = layer.window()},
                            (attention.position_bias.detach() - content).contiguous(),
                            {},
                            {}};
  if (attention.segment_embed.defined()) {
    step.segment_bias = (attention.segment_bias.detach() - content).contiguous();
    step.segment_keys =
        (attention.segment_embed.detach().transpose(0, 1) * attention.scale()).contiguous();
  }
  transformer_xl_->distances.add(attention.position_proj->weight, heads, scale);
  return block_of(*transformer_xl_, std::move(step));
}

Block BlockFreezer::block_with(const blocks::Convolutional& own, const blocks::Block&,
                               const TransformerLayerOptions&) {
  layers_.sees_padding = true;
  return block_of(attentions_, convolutional_attention(*own.attention, convert_));
}

Block BlockFreezer::block_with(const blocks::Fourier&, const blocks::Block&,
                               const TransformerLayerOptions&) {
  layers_.sees_padding = layers_.needs_key_masks = true;
  return {.mixers = &fourier_};
}

Block BlockFreezer::block_with(const blocks::Convolution& own, const blocks::Block&,
                               const TransformerLayerOptions&) {
  layers_.sees_padding = true;
  Block block = block_of(convolutions_, convolution_of(*own.convolution, convert_));
  block.after = Norm(own.convolution->norm);
  return block;
}

Block BlockFreezer::block_with(const blocks::Network& own, const blocks::Block& block,
                               const TransformerLayerOptions&) {
  return {.network = network_of(own, convert_, scale_of_weights(block))};
}

Block BlockFreezer::beside(const ConvolutionBesideImpl& beside) {
  ConvolutionBesideMixers& all = layers_.add<ConvolutionBesideMixers>();
  const DisentangledOptions& own = *beside.options.disentangled();
  const at::Tensor dense = dense_weight(*beside.conv);
  convert_.derived(beside.conv->weight, static_cast<int64_t>(dense.nbytes()));
  all.projection = convert_.float_projection(dense, beside.conv->bias.detach());
  all.size = own.conv_kernel_size();
  all.activation = own.conv_act();
  return {.mixers = &all, .after = Norm(beside.norm)};
}

}  // namespace posenc::inference
