#include "transformer/layers/blocks.h"

#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/low_rank.h"
#include "transformer/functional/attention_mask_internals.h"
#include "transformer/functional/drop.h"
#include "transformer/functional/fourier_mixing.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::blocks {
namespace {

Step mixing_step(const TransformerEncoderLayerImpl& layer) {
  if (layer.options.mixing() == Mixing::Fourier) return Fourier();
  std::optional<Step> step;
  visit_attentions(layer, [&]<typename Holder>(const Holder& own) {
    if constexpr (!std::is_same_v<Holder, MultiheadAttention>) {
      if (own) step = own.ptr().get();
    }
  });
  if (step) return *step;
  return Attention{layer.self_attn.ptr().get(), nullptr, get(layer.grid_position_bias)};
}

Step mixing_step(const ConformerEncoderLayerImpl& layer) {
  if (layer.transformer_xl_attn) return get(layer.transformer_xl_attn);
  return Attention{layer.self_attn.ptr().get(), get(layer.rotary)};
}

Block half_of(const ConformerFeedForwardImpl& network) {
  return {.before = network.norm.ptr().get(),
          .step = network_of(network),
          .dropout = network.dropout2.ptr().get(),
          .factor = 0.5};
}

// The adapter comes before the norm that ends a layer. The one of its own input is also that of
// what it is added to, or not.
void add_adapter(std::vector<Block>& blocks, const TransformerEncoderLayerImpl& layer) {
  const AdapterOptions& own = *layer.options.adapter();
  Block& network = blocks.back();
  Block adapter = {
      .step = Network{get(layer.adapter1), nullptr, get(layer.adapter2), &layer.options},
      .dropout = network.dropout,
      .factor = network.factor,
      .after = std::exchange(network.after, nullptr)};
  TransformerNormImpl* const norm = own.norm() == AdapterNorm::None     ? nullptr
                                    : own.norm() == AdapterNorm::Shared ? get(layer.norm2)
                                                                        : get(layer.adapter_norm);
  (own.norm_before_residual() ? network.after : adapter.before) = norm;
  blocks.push_back(adapter);
}

// x (B, L, D) with each of its heads rotated, before it is projected.
at::Tensor rotated(RotaryEmbeddingImpl& rotary, const at::Tensor& x, int64_t heads,
                   const at::Tensor& position_ids) {
  const at::Tensor of_heads = x.unflatten(-1, {heads, -1});
  return std::get<0>(rotary.forward(of_heads, {}, 0, position_ids)).flatten(2);
}

// step(x)
class StepRun {
 public:
  StepRun(const Call& call, const TransformerLayerOptions& options, const at::Tensor& x)
      : call_(call), options_(options), x_(x) {}

  at::Tensor operator()(const Attention& own) const {
    MultiheadAttentionImpl& attention = *own.attention;
    if (own.rotates_input != nullptr) {
      const at::Tensor keys =
          rotated(*own.rotates_input, x_, options_.num_heads(), call_.position_ids);
      return attend_heads(attention, call_.weights, keys, keys, x_, call_.mask);
    }
    const at::Tensor position_ids = attention.rotary ? call_.position_ids : at::Tensor();
    if (call_.cache != nullptr) return attention.step(x_, *call_.cache, call_.mask, position_ids);
    return attend_heads(attention, call_.weights, x_, x_, x_, call_.mask, position_ids);
  }
  // A module is called with what its forward() takes of a call.
  template <typename Module>
  at::Tensor operator()(Module* own) const {
    const auto& [table, segments, per_layer_input] = call_.positions;
    const AttentionMask& mask = call_.mask;
    if constexpr (requires { own->forward_with_weights(x_, table, mask, segments); }) {
      return attend_with(*own, call_.weights, x_, table, mask, segments);
    } else if constexpr (requires { own->forward_with_weights(x_, table, mask); }) {
      return attend_with(*own, call_.weights, x_, table, mask);
    } else if constexpr (requires { own->forward_with_weights(x_, mask); }) {
      return batch_first(
          [&](const at::Tensor& x) { return attend_with(*own, call_.weights, x, mask); });
    } else {
      return own->forward(x_);
    }
  }
  at::Tensor operator()(const Fourier&) const {
    TORCH_CHECK_VALUE(call_.weights == nullptr,
                      "[TransformerEncoderLayer] mixing must be Mixing::Attention for attention "
                      "weights. Got Mixing::Fourier");
    TORCH_CHECK_VALUE(AttentionMaskAccess::without_keys(call_.mask).is_none(),
                      "[TransformerEncoderLayer] mask must be of keys only with Mixing::Fourier, "
                      "which mixes all tokens. Got one of ",
                      AttentionMaskAccess::other_makers(call_.mask));
    return batch_first([](const at::Tensor& x) { return functional::fourier_mixing(x); });
  }
  at::Tensor operator()(const Network& own) const { return run(own, x_); }
  at::Tensor operator()(const PerLayerInput& own) const {
    const at::Tensor& input = call_.positions.per_layer_input;
    TORCH_CHECK_VALUE(input.defined(),
                      "[TransformerEncoderLayer] a layer with per_layer_input must be in a stack, "
                      "which makes it. Got a layer alone");
    const at::Tensor gate = functional::activate(own.gate->forward(x_), own.options->activation());
    return own.projection->forward(gate * input);
  }

 private:
  template <typename Mix>
  at::Tensor batch_first(const Mix& mix) const {
    return options_.batch_first() ? mix(x_) : mix(x_.transpose(0, 1)).transpose(0, 1);
  }

  const Call& call_;
  const TransformerLayerOptions& options_;
  const at::Tensor& x_;
};

}  // namespace

std::vector<Block> of(const TransformerEncoderLayerImpl& layer) {
  const auto block = [&](Step step, const TransformerNorm& norm, const TransformerNorm& post,
                         const torch::nn::Dropout& dropout, const LayerScale& scale) {
    Block own = {.step = step,
                 .dropout = dropout.ptr().get(),
                 .scale = get(scale),
                 .factor = layer.options.residual_scale(),
                 .residual_of_norm = layer.options.residual_of_norm()};
    if (layer.options.norm_first()) {
      own.before = get(norm);
      own.post = get(post);
    } else {
      own.after = get(norm);
    }
    return own;
  };
  std::vector<Block> blocks = {
      block(mixing_step(layer), layer.norm1, layer.post_norm1, layer.dropout1, layer.layer_scale1),
      block(network_of(layer), layer.norm2, layer.post_norm2, layer.dropout2, layer.layer_scale2)};
  if (layer.options.parallel() != Parallel::None) blocks.back().is_parallel = true;
  if (layer.options.parallel() == Parallel::SharedNorm) blocks.back().before = get(layer.norm1);
  if (layer.options.adapter()) add_adapter(blocks, layer);
  if (layer.options.per_layer_input()) {
    blocks.push_back({.step = PerLayerInput{get(layer.per_layer_gate),
                                            get(layer.per_layer_projection), &layer.options},
                      .post = get(layer.post_norm3),
                      .factor = layer.options.residual_scale()});
  }
  if (layer.options.output_factor()) blocks.back().output_factor = &layer.output_factor;
  return blocks;
}

std::vector<Block> of(const ConformerEncoderLayerImpl& layer) {
  std::vector<Block> blocks = {half_of(*layer.ffn1.ptr()),
                               {.before = layer.norm1.ptr().get(),
                                .step = mixing_step(layer),
                                .dropout = layer.dropout1.ptr().get()},
                               {.step = layer.conv.ptr().get()},
                               half_of(*layer.ffn2.ptr())};
  blocks.back().after = layer.norm2.ptr().get();
  return blocks;
}

at::Tensor run(const std::vector<Block>& blocks, at::Tensor x, const Call& call,
               const TransformerLayerOptions& options, bool is_training) {
  const double path = dropouts_of(options).path;
  at::Tensor read = x, input = x;  // by a block, and its norm
  const TransformerNormImpl* norm = nullptr;
  const auto added = [&](const Block& block) {
    if (!block.is_parallel) read = x;
    if (!block.is_parallel || block.before != norm)
      input = block.before != nullptr ? block.before->forward(read) : read;
    norm = block.before;
    at::Tensor y = std::visit(StepRun(call, options, input), block.step);
    if (block.post != nullptr) y = block.post->forward(y);
    if (block.dropout != nullptr) y = drop(*block.dropout, y);
    if (block.scale != nullptr) y = block.scale->forward(y);
    if (block.factor != 1.0) y = block.factor * y;
    return drop_path(y, path, is_training, options.batch_first());
  };
  for (const Block& block : blocks) {
    const at::Tensor y = added(block);
    x = (block.residual_of_norm ? input : x) + y;
    if (block.after != nullptr) x = block.after->forward(x);
    if (block.output_factor != nullptr) x = x * *block.output_factor;
  }
  return x;
}

at::Tensor run(const Network& network, const at::Tensor& x) {
  const Activation activation = network.options->activation();
  at::Tensor hidden = forward_linear(*network.wide, x);  // (B, L, d_ff), with gates (B, L, 2 d_ff)
  if (network.options->feed_forward() == FeedForward::Gated) {
    const auto parts = hidden.chunk(2, -1);
    hidden = functional::activate(parts[0], activation) * parts[1];
  } else if (activation == Activation::ReLU) {
    hidden.relu_();  // in place: a layer's largest tensor
  } else {
    hidden = functional::activate(hidden, activation);
  }
  if (network.between != nullptr) hidden = drop(*network.between, hidden);
  return forward_linear(*network.narrow, hidden);
}

}  // namespace posenc::blocks
