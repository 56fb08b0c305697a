// The frozen layers of encoders.

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <map>
#include <utility>

#include "inference/layers/bottleneck_layers.h"
#include "inference/layers/check_freezable.h"
#include "inference/layers/freeze_mixers.h"
#include "inference/layers/freeze_parts.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

// A block of a pre-norm layer has the norm of its own input in `after` until settle().
using LayerBlocks = std::vector<Block>;

// Adds the blocks of all layers in the order in which they run; those of a layer that runs several
// times are the same, with the same weights.
template <typename Layer>
void add_layers(const char* module, const TransformerEncoderImpl& encoder, BlockLayers& layers,
                const std::function<LayerBlocks(const Layer& layer)>& blocks_of) {
  std::map<std::size_t, LayerBlocks> frozen;
  for (const std::size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    const auto [own, is_new] = frozen.try_emplace(i);
    if (is_new) {
      own->second = blocks_of(layer_of<Layer>(module, encoder.layers, i));
      own->second.back().ends_layer = true;
    }
    layers.blocks.insert(layers.blocks.end(), own->second.begin(), own->second.end());
  }
}

// Gives each block the norm that follows it.
void settle(BlockLayers& layers, const TransformerNorm& last, bool norm_first) {
  if (!norm_first) {
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

// The layers have the rows of positions in place of the table and what projects it.
void record_positions(const TransformerEncoderImpl& encoder,
                      const std::vector<DisentangledStep>& attentions, WeightConverter& convert) {
  const auto leaves_out = [&](const torch::nn::Module& module) {
    for (const at::Tensor& parameter : module.parameters()) convert.derived(parameter, 0);
  };
  if (!encoder.relative_embeddings) return;
  int64_t bytes = 0;
  for (const DisentangledStep& attention : attentions) {
    for (const at::Tensor& rows : {attention.position_keys, attention.position_queries})
      if (rows.defined()) bytes += static_cast<int64_t>(rows.nbytes());
  }
  leaves_out(*encoder.relative_embeddings.ptr());
  convert.derived(encoder.relative_embeddings->weight, bytes);
  for (const auto& layer : *encoder.layers) {
    const auto& attention = *layer->as<TransformerEncoderLayerImpl>()->disentangled_attn.ptr();
    if (attention.pos_key) leaves_out(*attention.pos_key.ptr());
    if (attention.pos_query) leaves_out(*attention.pos_query.ptr());
  }
}

// A block after those of the first layer, which it ends in their place.
void add_convolution_beside(const ConvolutionBesideImpl& beside, BlockLayers& layers,
                            WeightConverter& convert) {
  Block own = convolution_beside_block(beside, layers.add<ConvolutionBesideMixers>(), convert);
  own.ends_layer = true;
  auto block = layers.blocks.begin();
  while (!block->ends_layer) ++block;
  block->ends_layer = false;
  layers.blocks.insert(block + 1, std::move(own));
}

std::unique_ptr<const FrozenLayers> encoder_layers(const TransformerEncoderImpl& encoder,
                                                   WeightConverter& convert) {
  const TransformerLayerOptions& options = encoder.options.layer();
  auto layers = std::make_unique<BlockLayers>(encoder, options.norm_first());
  auto& attentions = layers->add<AttentionMixers>();
  auto& fourier = layers->add<FourierMixers>();
  attentions.alibi = layers->alibi = alibi_of(encoder.options.alibi(), options.num_heads());
  attentions.counts_tokens = layers->counts_tokens = layers->alibi && layers->alibi->counts_tokens;
  DisentangledMixers* disentangled = nullptr;
  at::Tensor table;
  if (options.disentangled())
    disentangled = &layers->add<DisentangledMixers>(options.disentangled()->index());
  if (encoder.relative_embeddings) table = encoder.relative_embeddings.ptr()->forward();
  TransformerXLMixers* transformer_xl = nullptr;
  if (options.transformer_xl())
    transformer_xl = &layers->add<TransformerXLMixers>(*options.transformer_xl());
  if (encoder.shifted_positions)
    convert.derived(encoder.shifted_positions->mask_emb, 0);  // which no layer reads

  const auto mixing = [&](const TransformerEncoderLayerImpl& layer) -> Block {
    if (disentangled != nullptr) return disentangled_block(layer, table, *disentangled, convert);
    if (transformer_xl != nullptr) {
      return transformer_xl_block(*layer.transformer_xl_attn, *transformer_xl, layer.norm1,
                                  layer.options.window(), convert);
    }
    if (layer.options.mixing() == Mixing::Fourier)
      return {.mixers = &fourier, .after = Norm(layer.norm1)};
    return attention_block(layer, encoder, attentions, convert);
  };
  add_layers<TransformerEncoderLayerImpl>(
      "TransformerEncoder", encoder, *layers, [&](const TransformerEncoderLayerImpl& layer) {
        layers->needs_key_masks |= layer.options.mixing() == Mixing::Fourier;
        layers->sees_padding |= layer.options.mixing() != Mixing::Attention;
        LayerBlocks blocks = {
            mixing(layer),
            {.network =
                 network_of(layer, convert, scale_without(layer.post_norm2, layer.layer_scale2)),
             .post = Norm(layer.post_norm2, layer.layer_scale2),
             .after = Norm(layer.norm2)}};
        blocks.front().post = Norm(layer.post_norm1, layer.layer_scale1);
        return blocks;
      });
  layers->is_axial = attentions.is_axial();
  if (disentangled != nullptr) record_positions(encoder, disentangled->steps, convert);
  if (encoder.conv) add_convolution_beside(*encoder.conv, *layers, convert);
  settle(*layers, encoder.norm, options.norm_first());
  return layers;
}

// x / 2
Norm half_of(int64_t width) {
  Norm half;
  half.weight = at::full({width}, 0.5, at::kFloat);
  half.bias = at::zeros({width}, at::kFloat);
  half.kind = kernels::inference::NormKind::Affine;
  return half;
}

std::unique_ptr<const FrozenLayers> conformer_layers(const TransformerEncoderImpl& encoder,
                                                     WeightConverter& convert) {
  const auto& transformer_xl = encoder.options.layer().transformer_xl();
  auto layers = std::make_unique<BlockLayers>(encoder, /*norm_first=*/true);
  layers->sees_padding = true;
  auto& convolutions = layers->add<ConformerConvolutionMixers>();
  AttentionMixers* plain = transformer_xl ? nullptr : &layers->add<AttentionMixers>();
  TransformerXLMixers* relative =
      transformer_xl ? &layers->add<TransformerXLMixers>(*transformer_xl) : nullptr;
  const Norm half = half_of(encoder.options.layer().d_model());
  const auto network = [&](const ConformerFeedForwardImpl& own) {
    return Block{.network = network_of(own, convert), .post = half, .after = Norm(own.norm)};
  };
  add_layers<ConformerEncoderLayerImpl>(
      "ConformerEncoder", encoder, *layers, [&](const ConformerEncoderLayerImpl& layer) {
        const Block attention = relative != nullptr
                                    ? transformer_xl_block(*layer.transformer_xl_attn, *relative,
                                                           layer.norm1, std::nullopt, convert)
                                    : conformer_block(layer, *plain, convert);
        LayerBlocks blocks = {network(*layer.ffn1), attention,
                              conformer_convolution_block(*layer.conv, convolutions, convert),
                              network(*layer.ffn2)};
        blocks.back().in_place = Norm(layer.norm2);
        return blocks;
      });
  settle(*layers, encoder.norm, /*norm_first=*/true);
  return layers;
}

}  // namespace

std::unique_ptr<const FrozenLayers> freeze_layers(const TransformerEncoderImpl& encoder,
                                                  const std::string& prefix,
                                                  WeightConverter& convert) {
  check_freezable(encoder, prefix);
  const TransformerLayerOptions& options = encoder.options.layer();
  if (options.bottleneck()) return std::make_unique<BottleneckLayers>(encoder, convert);
  if (options.conformer()) return conformer_layers(encoder, convert);
  return encoder_layers(encoder, convert);
}

}  // namespace posenc::inference
