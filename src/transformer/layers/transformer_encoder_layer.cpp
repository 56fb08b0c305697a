#include "posenc/transformer/layers/transformer_encoder_layer.h"

#include <ostream>
#include <tuple>

#include "core/print_fields.h"
#include "positions/nn/weights.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_kinds.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

constexpr const char* kLayer = "TransformerEncoderLayer";

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options_)
    : options(options_) {
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  check_layer(kLayer, options);
  check_kind(kLayer, options);
  TORCH_CHECK_VALUE(options.mixing() != Mixing::Fourier || options.num_heads() == 1, "[", kLayer,
                    "] num_heads must be its default with Mixing::Fourier. Got another");
  const LayerDropouts drops = dropouts_of(options);
  if (const auto add_attention = kind_of(options).add_attention) add_attention(*this);
  linear1 = register_module("linear1", make_linear1(options));
  dropout = register_module("dropout", torch::nn::Dropout(drops.activation));
  linear2 = register_module("linear2", make_linear2(options));
  if (options.first_norm()) norm1 = register_module("norm1", make_norm(options));
  if (options.second_norm() && options.parallel() != Parallel::SharedNorm)
    norm2 = register_module("norm2", make_norm(options));
  if (options.post_norms()) {
    post_norm1 = register_module("post_norm1", make_norm(options));
    post_norm2 = register_module("post_norm2", make_norm(options));
  }
  if (options.layer_scale()) {
    layer_scale1 = register_module("layer_scale1", make_scale(options));
    layer_scale2 = register_module("layer_scale2", make_scale(options));
  }
  if (const auto& own = options.adapter()) {
    adapter1 = register_module(
        "adapter1", make_linear(torch::nn::LinearOptions(options.d_model(), own->width())));
    adapter2 = register_module(
        "adapter2", make_linear(torch::nn::LinearOptions(own->width(), options.d_model())));
    if (own->norm() == AdapterNorm::Own)
      adapter_norm = register_module("adapter_norm", make_norm(options));
  }
  if (const auto width = options.per_layer_input()) {
    const auto linear = [](int64_t in, int64_t out) {
      return make_linear(torch::nn::LinearOptions(in, out).bias(false));
    };
    per_layer_gate = register_module("per_layer_gate", linear(options.d_model(), *width));
    per_layer_projection =
        register_module("per_layer_projection", linear(*width, options.d_model()));
    post_norm3 = register_module("post_norm3", make_norm(options));
  }
  if (options.output_factor()) output_factor = register_buffer("output_factor", torch::ones({1}));
  if (options.grid_bias()) {
    grid_position_bias = register_module(
        "grid_position_bias", GridPositionBias(*options.grid_bias(), options.num_heads()));
  }
  dropout1 = register_module("dropout1", torch::nn::Dropout(drops.attention_output));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.output));
}

void TransformerEncoderLayerImpl::reset_parameters() {
  blocks::visit_attentions(*this, [](const auto& attention) {
    if (attention) attention.ptr()->reset_parameters();
  });
  for (auto* linear :
       {&linear1, &linear2, &adapter1, &adapter2, &per_layer_gate, &per_layer_projection}) {
    if (*linear) (*linear)->reset_parameters();
  }
  for (auto* norm : {&norm1, &norm2, &post_norm1, &post_norm2, &adapter_norm, &post_norm3}) {
    if (*norm) (*norm)->reset_parameters();
  }
  for (auto* scale : {&layer_scale1, &layer_scale2}) {
    if (*scale) (*scale)->reset_parameters();
  }
  if (grid_position_bias) grid_position_bias->reset_parameters();
}

void TransformerEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TransformerEncoderLayer", options, TransformerLayerOptions(-1, -1));
}

torch::Tensor TransformerEncoderLayerImpl::forward(const torch::Tensor& x,
                                                   const AttentionMask& mask,
                                                   const torch::Tensor& position_ids) {
  return run(x, {}, with_own_parts(mask), position_ids, nullptr);
}

torch::Tensor TransformerEncoderLayerImpl::forward_relative(const torch::Tensor& x,
                                                            const StackPositions& relative,
                                                            const AttentionMask& mask) {
  return run(x, relative, with_own_parts(mask), {}, nullptr);
}

std::tuple<torch::Tensor, torch::Tensor> TransformerEncoderLayerImpl::forward_with_weights(
    const torch::Tensor& x, const AttentionMask& mask, const torch::Tensor& position_ids) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, {}, with_own_parts(mask), position_ids, &weights);
  return {out, weights};
}

// What a stack adds to the mask of its layers.
AttentionMask TransformerEncoderLayerImpl::with_own_parts(const AttentionMask& mask) const {
  return with_grid_bias(with_window(mask, options), grid_position_bias, std::nullopt);
}

torch::Tensor TransformerEncoderLayerImpl::run(const torch::Tensor& x,
                                               const StackPositions& relative,
                                               const AttentionMask& mask,
                                               const torch::Tensor& position_ids,
                                               torch::Tensor* weights) {
  return blocks::run(blocks::of(*this), x, {relative, mask, position_ids, weights}, options,
                     is_training());
}

// The next tokens of a causal stack. The mask has the window, and is that of
// MultiheadAttention::step().
torch::Tensor TransformerEncoderLayerImpl::step(const torch::Tensor& x, KeyValueCache& cache,
                                                const AttentionMask& mask,
                                                const torch::Tensor& position_ids) {
  const StackPositions none;
  return blocks::run(blocks::of(*this), x, {none, mask, position_ids, nullptr, &cache}, options,
                     is_training());
}

}  // namespace posenc
