#include "posenc/transformer/layers/bottleneck_encoder_layer.h"

#include <ostream>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/print_fields.h"
#include "positions/nn/weights.h"
#include "transformer/functional/drop.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_kinds.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

const BottleneckOptions& bottleneck_of(const char* module, const TransformerLayerOptions& options) {
  TORCH_CHECK_VALUE(options.bottleneck(), "[", module,
                    "] bottleneck must be set. Got no bottleneck");
  return *options.bottleneck();
}

// The layers of a bottleneck are those of other options.
TransformerNorm norm_of_width(const TransformerLayerOptions& options, int64_t width) {
  return make_norm(TransformerLayerOptions(options).d_model(width));
}

// Only the last network has a dropout of what it adds, where it ends the layer.
TransformerLayerOptions network_options(const TransformerLayerOptions& layer, bool is_last) {
  const BottleneckOptions& own = *layer.bottleneck();
  TransformerLayerOptions options = layer;
  LayerDropouts drops = dropouts_of(layer);
  if (!is_last || own.use_bottleneck()) drops.output = 0.0;
  if (is_last && own.last_norm_eps()) options.layer_norm_eps(*own.last_norm_eps());
  return options.dropouts(drops);
}

torch::nn::Linear projection_of(const TransformerLayerOptions& options, int64_t in, int64_t out) {
  return make_linear(torch::nn::LinearOptions(in, out).bias(options.bias()));
}

void check_bottleneck(const TransformerLayerOptions& options) {
  constexpr const char* kLayer = "BottleneckEncoderLayer";
  check_kind(kLayer, options);
  const BottleneckOptions& own = *options.bottleneck();
  const int64_t width = own.intra_bottleneck_size();
  check_positive(kLayer, "intra_bottleneck_size", width);
  check_positive(kLayer, "num_feedforward_networks", own.num_feedforward_networks());
  check_positive(kLayer, "d_model", options.d_model());
  check_positive(kLayer, "num_heads", options.num_heads());
  check_positive(kLayer, "d_ff", options.d_ff());
  TORCH_CHECK_VALUE(own.use_bottleneck() || width == options.d_model(), "[", kLayer,
                    "] intra_bottleneck_size must be d_model ", options.d_model(),
                    " without use_bottleneck. Got ", width);
  const bool from_input =
      own.use_bottleneck() && !own.use_bottleneck_attention() && !own.key_query_shared_bottleneck();
  TORCH_CHECK_VALUE(!from_input || width == options.d_model(), "[", kLayer,
                    "] intra_bottleneck_size must be d_model ", options.d_model(),
                    " without use_bottleneck_attention and key_query_shared_bottleneck. Got ",
                    width);
  TORCH_CHECK_VALUE(width % options.num_heads() == 0, "[", kLayer,
                    "] num_heads must divide intra_bottleneck_size ", width, ". Got ",
                    options.num_heads());
}

}  // namespace

BottleneckFeedForwardImpl::BottleneckFeedForwardImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  BottleneckFeedForwardImpl::reset();
}

void BottleneckFeedForwardImpl::reset() {
  const int64_t width = bottleneck_of("BottleneckFeedForward", options).intra_bottleneck_size();
  const auto inner = TransformerLayerOptions(options).d_model(width);
  linear1 = register_module("linear1", make_linear1(inner));
  dropout = register_module("dropout", torch::nn::Dropout(dropouts_of(options).activation));
  linear2 = register_module("linear2", make_linear2(inner));
  dropout2 = register_module("dropout2", torch::nn::Dropout(dropouts_of(options).output));
  norm = register_module("norm", make_norm(inner));
}

void BottleneckFeedForwardImpl::reset_parameters() {
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm->reset_parameters();
}

void BottleneckFeedForwardImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::BottleneckFeedForward(width=" << options.bottleneck()->intra_bottleneck_size()
         << ", d_ff=" << options.d_ff() << ")";
}

torch::Tensor BottleneckFeedForwardImpl::forward(const torch::Tensor& x) {
  return norm->forward(x + drop(*dropout2, blocks::run(blocks::network_of(*this), x)));
}

BottleneckEncoderLayerImpl::BottleneckEncoderLayerImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  BottleneckEncoderLayerImpl::reset();
}

void BottleneckEncoderLayerImpl::reset() {
  check_bottleneck(options);
  const BottleneckOptions& own = *options.bottleneck();
  const LayerDropouts drops = dropouts_of(options);
  const int64_t width = own.intra_bottleneck_size(), outer = options.d_model();
  if (own.use_bottleneck()) {
    input = register_module("input", projection_of(options, outer, width));
    input_norm = register_module("input_norm", norm_of_width(options, width));
  }
  if (own.use_bottleneck() && own.key_query_shared_bottleneck()) {
    shared = register_module("shared", projection_of(options, outer, width));
    shared_norm = register_module("shared_norm", norm_of_width(options, width));
  }
  const bool values_from_input = own.use_bottleneck() && !own.use_bottleneck_attention();
  MultiheadAttentionOptions attention(width, options.num_heads());
  if (values_from_input) attention.vdim(outer);
  self_attn = register_module(
      "self_attn", MultiheadAttention(attention.dropout(drops.attention)
                                          .scale(options.attention_scale())
                                          .bias(options.qkv_bias().value_or(options.bias()))
                                          .query_bias(options.query_bias())
                                          .key_bias(options.key_bias())
                                          .value_bias(options.value_bias())
                                          .out_bias(options.out_bias().value_or(options.bias()))
                                          .batch_first(options.batch_first())
                                          .python_dropout_order(options.python_dropout_order())));
  norm1 = register_module("norm1", norm_of_width(options, width));
  ffn = register_module("ffn", torch::nn::ModuleList());
  for (int64_t i = 1; i < own.num_feedforward_networks(); ++i) {
    ffn->push_back(BottleneckFeedForward(network_options(options, /*is_last=*/false)));
  }
  last_ffn = register_module("last_ffn",
                             BottleneckFeedForward(network_options(options, /*is_last=*/true)));
  dropout1 = register_module("dropout1", torch::nn::Dropout(drops.attention_output));
  if (!own.use_bottleneck()) return;
  output = register_module("output", projection_of(options, width, outer));
  output_norm = register_module("output_norm", norm_of_width(options, outer));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.output));
}

void BottleneckEncoderLayerImpl::reset_parameters() {
  self_attn->reset_parameters();
  for (auto* linear : {&input, &shared, &output}) {
    if (*linear) (*linear)->reset_parameters();
  }
  for (auto* norm : {&input_norm, &shared_norm, &norm1, &output_norm}) {
    if (*norm) (*norm)->reset_parameters();
  }
  for (const auto& network : *ffn) {
    network->as<BottleneckFeedForwardImpl>()->reset_parameters();
  }
  last_ffn->reset_parameters();
}

void BottleneckEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "BottleneckEncoderLayer", options, TransformerLayerOptions(-1, -1));
}

torch::Tensor BottleneckEncoderLayerImpl::forward(const torch::Tensor& x,
                                                  const AttentionMask& mask) {
  return run(x, {}, mask, {}, nullptr);
}

torch::Tensor BottleneckEncoderLayerImpl::run(const torch::Tensor& x, const StackPositions&,
                                              const AttentionMask& mask,
                                              const torch::Tensor& position_ids,
                                              torch::Tensor* weights) {
  const BottleneckOptions& own = *options.bottleneck();
  const torch::Tensor inner = input ? input_norm->forward(input->forward(x)) : x;
  const bool shares = shared && !own.use_bottleneck_attention();
  const torch::Tensor values = own.use_bottleneck_attention() ? inner : x;
  const torch::Tensor queries = shares ? shared_norm->forward(shared->forward(x)) : values;
  torch::Tensor y = attend_heads(*self_attn, weights, queries, queries, values, mask, position_ids);
  y = norm1->forward(inner + drop(*dropout1, y));
  for (const auto& network : *ffn) y = network->as<BottleneckFeedForwardImpl>()->forward(y);
  y = last_ffn->forward(y);
  if (!output) return y;
  return output_norm->forward(x + drop(*dropout2, output->forward(y)));
}

}  // namespace posenc
