// The frozen layers of encoders.

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "inference/layers/bottleneck_layers.h"
#include "inference/layers/check_freezable.h"
#include "inference/layers/mixers.h"
#include "transformer/layers/layer_kinds.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

// A factor of what a block adds, or of its result, as a norm.
Norm norm_of_factor(double factor, int64_t width) {
  Norm norm;
  norm.weight = at::full({width}, factor, at::kFloat);
  norm.bias = at::zeros({width}, at::kFloat);
  norm.kind = kernels::inference::NormKind::Affine;
  return norm;
}

// A block of a layer with these options. In a pre-norm stack the norm of its own input is in
// `after` until settle(), and the one after the sum in `in_place`.
Block freeze_block(const blocks::Block& block, const TransformerLayerOptions& layer,
                   std::size_t number, StackFreezer& stack) {
  stack.begin(block, layer, number);
  Block frozen = std::visit(
      [&]<typename Step>(const Step& step) {
        if constexpr (std::is_pointer_v<Step>) {
          return freeze_step(*step, stack);
        } else {
          return freeze_step(step, stack);
        }
      },
      block.step);
  // What a kind of layer has beyond this needs a step that computes it.
  TORCH_INTERNAL_ASSERT(block.scale == nullptr || stack.takes_scale(), "a step without a scale");
  frozen.post = Norm(block.post, block.scale);
  if (block.factor != 1.0 && frozen.post)
    frozen.post.multiply(at::full({}, block.factor, at::kFloat));
  if (block.factor != 1.0 && !frozen.post)
    frozen.post = norm_of_factor(block.factor, stack.encoder.options.layer().d_model());
  if (block.post != nullptr && (block.scale != nullptr || block.factor != 1.0)) {  // their product
    if (block.scale != nullptr) stack.convert.derived(block.scale->lambda1, 0);
    for (const at::Tensor& parameter : block.post->parameters())
      stack.convert.derived(parameter, static_cast<int64_t>(parameter.nbytes()));
  }
  if (block.before != nullptr) frozen.after = Norm(block.before);
  (stack.layers.norm_first() ? frozen.in_place : frozen.after) = Norm(block.after);
  frozen.next_is_residual = block.residual_of_norm && frozen.after;
  if (block.output_factor != nullptr) {
    frozen.in_place = norm_of_factor(block.output_factor->item<double>(),
                                     stack.encoder.options.layer().d_model());
    stack.convert.derived(*block.output_factor, 0);
  }
  return frozen;
}

// The blocks of a layer, of which a network that is parallel to a mixer is with that.
std::vector<Block> freeze_blocks(const std::vector<blocks::Block>& blocks,
                                 const TransformerLayerOptions& layer, std::size_t number,
                                 StackFreezer& stack) {
  std::vector<Block> all;
  const TransformerNormImpl* read_by = nullptr;  // the norm of the block before
  for (const blocks::Block& block : blocks) {
    Block frozen = freeze_block(block, layer, number, stack);
    if (block.is_parallel) {
      const Norm own = block.before == read_by ? Norm() : frozen.after;
      all.back().beside = Beside{std::move(frozen.network), own, frozen.post};
    } else {
      all.push_back(std::move(frozen));
    }
    read_by = block.before;
  }
  all.back().ends_layer = true;
  return all;
}

// Gives each block the norm that follows it.
void settle(BlockLayers& layers, const TransformerNorm& last) {
  if (!layers.norm_first()) {
    layers.last = Norm(last);
    return;
  }
  std::vector<Norm*> norms;
  bool* is_residual = &layers.entry_is_residual;  // of the block before
  for (Block& block : layers.blocks) {
    *is_residual = std::exchange(block.next_is_residual, false);
    block.is_unnormed = *is_residual || !block.after;
    is_residual = &block.next_is_residual;
    norms.push_back(&block.after);
  }
  shift_norms(norms, layers.entry, Norm(last));
  for (Block& block : layers.blocks) {
    if (block.in_place || block.next_is_residual) block.next = std::exchange(block.after, {});
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

// Whether an adapter has a norm of its input alone, also in a post-norm stack.
bool has_normed_adapter(const TransformerEncoderImpl& encoder) {
  return std::any_of(encoder.layers->begin(), encoder.layers->end(), [](const auto& layer) {
    const auto& own = dynamic_cast<const EncoderLayerBase&>(*layer).layer_options().adapter();
    return own && !own->norm_before_residual();
  });
}

// The layers in the order in which they run; those that run several times are frozen once.
std::unique_ptr<const FrozenLayers> block_layers(const TransformerEncoderImpl& encoder,
                                                 WeightConverter& convert) {
  const TransformerLayerOptions& options = encoder.options.layer();
  auto layers = std::make_unique<BlockLayers>(
      encoder, options.norm_first() || options.conformer() || has_normed_adapter(encoder));
  layers->alibi = alibi_of(encoder.options.alibi(), options.num_heads());
  layers->counts_tokens = layers->alibi && layers->alibi->counts_tokens;
  StackFreezer stack(encoder, *layers, convert);
  std::map<std::size_t, std::vector<Block>> frozen;
  for (const std::size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    const auto [own, is_new] = frozen.try_emplace(i);
    if (is_new) {
      const torch::nn::Module& layer = *encoder.layers->ptr(i);
      const TransformerLayerOptions& of_layer =
          dynamic_cast<const EncoderLayerBase&>(layer).layer_options();
      own->second = freeze_blocks(kind_of(options).blocks(layer), of_layer, i, stack);
    }
    layers->blocks.insert(layers->blocks.end(), own->second.begin(), own->second.end());
  }
  if (encoder.conv) add_beside_first(freeze_beside(*encoder.conv, stack), *layers);
  settle(*layers, encoder.norm);
  return layers;
}

}  // namespace

Block freeze_step(const blocks::Network& own, StackFreezer& stack) {
  return {.network = network_of(own, stack.convert, stack.scale_of_weights())};
}

std::unique_ptr<const FrozenLayers> freeze_layers(const TransformerEncoderImpl& encoder,
                                                  const std::string& prefix,
                                                  WeightConverter& convert) {
  check_freezable(encoder, prefix);
  if (encoder.options.layer().bottleneck())
    return std::make_unique<BottleneckLayers>(encoder, convert);
  return block_layers(encoder, convert);
}

}  // namespace posenc::inference
