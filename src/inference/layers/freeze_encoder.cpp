// The frozen layers of encoders.

#include <map>
#include <utility>

#include "inference/layers/bottleneck_layers.h"
#include "inference/layers/check_freezable.h"
#include "inference/layers/freeze_mixers.h"
#include "inference/layers/freeze_parts.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

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
template <typename Layer>
std::unique_ptr<const FrozenLayers> block_layers(const char* module,
                                                 const TransformerEncoderImpl& encoder,
                                                 WeightConverter& convert) {
  const TransformerLayerOptions& options = encoder.options.layer();
  auto layers = std::make_unique<BlockLayers>(encoder, options.norm_first() || options.conformer());
  BlockFreezer freeze(encoder, *layers, convert);
  std::map<std::size_t, std::vector<Block>> frozen;
  for (const std::size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    const auto [own, is_new] = frozen.try_emplace(i);
    if (is_new) {
      const Layer& layer = layer_of<Layer>(module, encoder.layers, i);
      for (const blocks::Block& block : blocks::of(layer))
        own->second.push_back(freeze(block, layer.options));
      own->second.back().ends_layer = true;
    }
    layers->blocks.insert(layers->blocks.end(), own->second.begin(), own->second.end());
  }
  if (encoder.conv) add_beside_first(freeze.beside(*encoder.conv), *layers);
  settle(*layers, encoder.norm);
  return layers;
}

}  // namespace

std::unique_ptr<const FrozenLayers> freeze_layers(const TransformerEncoderImpl& encoder,
                                                  const std::string& prefix,
                                                  WeightConverter& convert) {
  check_freezable(encoder, prefix);
  const TransformerLayerOptions& options = encoder.options.layer();
  if (options.bottleneck()) return std::make_unique<BottleneckLayers>(encoder, convert);
  if (options.conformer())
    return block_layers<ConformerEncoderLayerImpl>("ConformerEncoder", encoder, convert);
  return block_layers<TransformerEncoderLayerImpl>("TransformerEncoder", encoder, convert);
}

}  // namespace posenc::inference
