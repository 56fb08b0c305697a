// The frozen layers of encoders.
//
// posenc-budget: one function for each step of a block

#include <ATen/ops/full.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <utility>

#include "inference/layers/bottleneck_layers.h"
#include "inference/layers/check_freezable.h"
#include "inference/layers/freeze_parts.h"
#include "inference/layers/mixers.h"
#include "transformer/attention/position_projections.h"
#include "transformer/layers/layer_kinds.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

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
                                      std::optional<int64_t> window, WeightConverter& convert) {
  const int64_t heads = own.options.num_heads(), head_dim = own.options.embed_dim() / (2 * heads);
  convert.derived(own.depthwise_weight, static_cast<int64_t>(own.depthwise_weight.nbytes()));
  return {.sizes = {heads, heads, head_dim},
          .score_scale = score_scale(head_dim),
          .in_proj = convert.projection(own.in_proj_weight, own.in_proj_bias),
          .out_proj = linear(*own.out_proj, convert),
          .convolution =
              Convolution{own.depthwise_weight.t().contiguous(), linear(*own.pointwise, convert),
                          linear(*own.kernel, convert), linear(*own.conv_out, convert), heads,
                          own.options.conv_kernel_size()},
          .window = window};
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

TransformerXLStep transformer_xl_of(const TransformerXLAttentionImpl& attention,
                                    std::optional<int64_t> window, WeightConverter& convert) {
  for (const at::Tensor& source :
       {attention.position_bias, attention.segment_bias, attention.segment_embed}) {
    if (source.defined()) convert.derived(source, static_cast<int64_t>(source.nbytes()));
  }
  const int64_t heads = attention.options.num_heads();
  const at::Tensor content = attention.content_bias.detach();
  TransformerXLStep step = {{.sizes = {heads, heads, attention.options.embed_dim() / heads},
                             .score_scale = static_cast<float>(attention.scale()),
                             .in_proj = transformer_xl_in_proj(attention, convert),
                             .out_proj = linear(*attention.out_proj, convert),
                             .window = window},
                            (attention.position_bias.detach() - content).contiguous(),
                            {},
                            {}};
  if (!attention.segment_embed.defined()) return step;
  step.segment_bias = (attention.segment_bias.detach() - content).contiguous();
  step.segment_keys =
      (attention.segment_embed.detach().transpose(0, 1) * attention.scale()).contiguous();
  return step;
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

// Makes the frozen blocks of a stack's layers; each mixer is added to those of its kind.
class BlockFreezer {
 public:
  BlockFreezer(const TransformerEncoderImpl& encoder, BlockLayers& layers, WeightConverter& convert)
      : encoder_(encoder), layers_(layers), convert_(convert) {
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

  // A block of a layer with these options. In a pre-norm stack the norm of its own input is in
  // `after` until settle(), and the one after the sum in `in_place`.
  Block freeze(const blocks::Block& block, const TransformerLayerOptions& layer) {
    block_ = &block;
    window_ = layer.window();
    takes_scale_ = block.post != nullptr;
    Block frozen = std::visit(*this, block.step);
    // What a kind of layer has beyond this needs a step that computes it.
    TORCH_INTERNAL_ASSERT(block.scale == nullptr || takes_scale_, "a step without a scale");
    TORCH_INTERNAL_ASSERT(block.factor == 1.0 || block.post == nullptr, "a factor and a norm");
    frozen.post = block.factor == 1.0
                      ? Norm(block.post, block.scale)
                      : norm_of_factor(block.factor, encoder_.options.layer().d_model());
    if (block.post != nullptr && block.scale != nullptr) {  // their product
      convert_.derived(block.scale->lambda1, 0);
      for (const at::Tensor& parameter : block.post->parameters())
        convert_.derived(parameter, static_cast<int64_t>(parameter.nbytes()));
    }
    if (block.before != nullptr) frozen.after = Norm(block.before);
    (layers_.norm_first() ? frozen.in_place : frozen.after) = Norm(block.after);
    return frozen;
  }

  // The blocks of steps, without what all blocks have.

  // Queries and keys have a projection of their own where their input is rotated.
  Block operator()(const blocks::Attention& own) {
    const MultiheadAttentionImpl& attention = *own.attention;
    const HeadSizes sizes = HeadSizes::of(attention.options);
    AttentionStep step = {
        .sizes = sizes,
        .score_scale = scale_of(attention),
        .in_proj = {},
        .out_proj = linear(*attention.out_proj, convert_, scale_of_weights()),
        .query_norm = Norm(attention.q_norm),
        .key_norm = Norm(attention.k_norm),
        .rotation = add_rotation(attentions_.rotations, blocks::get(attention.rotary), sizes),
        .relative = relative_of(attentions_.relative_biases, encoder_.relative_attention_bias,
                                attention.relative_attention_bias),
        .grid_bias =
            attentions_.grid_biases.add(blocks::get(encoder_.grid_position_bias), own.grid_bias),
        .window = window_};
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

  Block operator()(const blocks::Disentangled& own) {
    DisentangledStep step = disentangled_of(*own.attention, table_, window_, convert_);
    for (const at::Tensor& rows : {step.position_keys, step.position_queries}) {
      if (rows.defined())
        convert_.derived(encoder_.relative_embeddings->weight, static_cast<int64_t>(rows.nbytes()));
    }
    leave_out(blocks::get(own.attention->pos_key));
    leave_out(blocks::get(own.attention->pos_query));
    return block_of(*disentangled_, std::move(step));
  }

  Block operator()(const blocks::TransformerXL& own) {
    const TransformerXLAttentionImpl& attention = *own.attention;
    TransformerXLStep step = transformer_xl_of(attention, window_, convert_);
    transformer_xl_->distances.add(attention.position_proj->weight, step.sizes.heads,
                                   step.score_scale);
    return block_of(*transformer_xl_, std::move(step));
  }

  Block operator()(const blocks::Convolutional& own) {
    layers_.sees_padding = true;
    return block_of(attentions_, convolutional_attention(*own.attention, window_, convert_));
  }

  Block operator()(const blocks::Fourier&) {
    TORCH_INTERNAL_ASSERT(block_->post == nullptr, "a norm after Fourier's transform");
    layers_.sees_padding = layers_.needs_key_masks = true;
    return {.mixers = &fourier_};
  }

  Block operator()(const blocks::Convolution& own) {
    TORCH_INTERNAL_ASSERT(block_->before == nullptr, "a norm before a convolution's own");
    layers_.sees_padding = true;
    Block block = block_of(convolutions_, convolution_of(*own.convolution, convert_));
    block.after = Norm(own.convolution->norm);
    return block;
  }

  Block operator()(const blocks::Network& own) {
    return {.network = network_of(own, convert_, scale_of_weights())};
  }

  // The convolution beside a layer.
  Block beside(const ConvolutionBesideImpl& beside) {
    ConvolutionBesideMixers& all = layers_.add<ConvolutionBesideMixers>();
    const DisentangledOptions& own = *beside.options.disentangled();
    const at::Tensor dense = dense_weight(*beside.conv);
    convert_.derived(beside.conv->weight, static_cast<int64_t>(dense.nbytes()));
    all.projection = convert_.float_projection(dense, beside.conv->bias.detach());
    all.size = own.conv_kernel_size();
    all.activation = own.conv_act();
    return {.mixers = &all, .after = Norm(beside.norm)};
  }

 private:
  // A projection is multiplied by the scale of what its block adds, unless a norm of that takes it.
  const LayerScaleImpl* scale_of_weights() {
    takes_scale_ = true;
    return block_->post == nullptr ? block_->scale : nullptr;
  }
  // The layers have rows of positions in place of what they are computed from.
  void leave_out(const torch::nn::Module* module) {
    if (module == nullptr) return;
    for (const at::Tensor& parameter : module->parameters()) convert_.derived(parameter, 0);
  }

  const TransformerEncoderImpl& encoder_;
  BlockLayers& layers_;
  WeightConverter& convert_;
  AttentionMixers& attentions_ = layers_.add<AttentionMixers>();
  FourierMixers& fourier_ = layers_.add<FourierMixers>();
  ConformerConvolutionMixers& convolutions_ = layers_.add<ConformerConvolutionMixers>();
  DisentangledMixers* disentangled_ = nullptr;
  TransformerXLMixers* transformer_xl_ = nullptr;
  at::Tensor table_;  // the rows of relative positions of a DisentangledAttention
  const blocks::Block* block_ = nullptr;  // of the step
  std::optional<int64_t> window_;         // of its layer
  bool takes_scale_ = false;              // whether the frozen block multiplies by its scale
};

// Gives each block the norm that follows it.
void settle(BlockLayers& layers, const TransformerNorm& last) {
  if (!layers.norm_first()) {
    layers.last = Norm(last);
    return;
  }
  std::vector<Norm*> norms;
  for (Block& block : layers.blocks) {
    block.is_unnormed = !block.after;
    norms.push_back(&block.after);
  }
  shift_norms(norms, layers.entry, Norm(last));
  for (Block& block : layers.blocks) {
    if (block.in_place) block.next = std::exchange(block.after, {});
  }
  Block& end = layers.blocks.back();
  if (end.in_place) layers.last = std::exchange(end.next, {});
}

// A block after those of the first layer, which it ends in their place.
void add_beside_first(Block own, BlockLayers& layers) {
  own.ends_layer = true;
  auto block = layers.blocks.begin();
  while (!block->ends_layer) ++block;
  block->ends_layer = false;
  layers.blocks.insert(block + 1, std::move(own));
}

// The layers in the order in which they run; those that run several times are frozen once.
std::unique_ptr<const FrozenLayers> block_layers(const TransformerEncoderImpl& encoder,
                                                 WeightConverter& convert) {
  const TransformerLayerOptions& options = encoder.options.layer();
  auto layers = std::make_unique<BlockLayers>(encoder, options.norm_first() || options.conformer());
  BlockFreezer freezer(encoder, *layers, convert);
  std::map<std::size_t, std::vector<Block>> frozen;
  for (const std::size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    const auto [own, is_new] = frozen.try_emplace(i);
    if (is_new) {
      const torch::nn::Module& layer = *encoder.layers->ptr(i);
      const TransformerLayerOptions& of_layer =
          dynamic_cast<const EncoderLayerBase&>(layer).layer_options();
      for (const blocks::Block& block : kind_of(options).blocks(layer))
        own->second.push_back(freezer.freeze(block, of_layer));
      own->second.back().ends_layer = true;
    }
    layers->blocks.insert(layers->blocks.end(), own->second.begin(), own->second.end());
  }
  if (encoder.conv) add_beside_first(freezer.beside(*encoder.conv), *layers);
  settle(*layers, encoder.norm);
  return layers;
}

}  // namespace

std::unique_ptr<const FrozenLayers> freeze_layers(const TransformerEncoderImpl& encoder,
                                                  const std::string& prefix,
                                                  WeightConverter& convert) {
  check_freezable(encoder, prefix);
  if (encoder.options.layer().bottleneck())
    return std::make_unique<BottleneckLayers>(encoder, convert);
  return block_layers(encoder, convert);
}

}  // namespace posenc::inference
