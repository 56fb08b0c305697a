// The checks of every module that freeze() takes.

#include "inference/layers/check_freezable.h"

#include <algorithm>
#include <sstream>

#include "inference/attention/attention.h"
#include "inference/layers/module_parts.h"
#include "positions/nn/weights.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

template <typename Holder>
const auto& module_of(const std::string& name, const Holder& holder) {
  TORCH_CHECK_VALUE(!holder.is_empty(), "[freeze] ", name,
                    " must be a module. Got an empty holder");
  return *holder.ptr();
}

template <typename Value>
void check_option(const std::string& name, const char* option, const Value& value,
                  const Value& expected) {
  TORCH_CHECK_VALUE(value == expected, "[freeze] ", name, ": ", option, " must be ", expected,
                    ", as in the rest of the model. Got ", value);
}

std::string text(bool value) { return value ? "true" : "false"; }

// A module of the model, if it is there, beside one with these options.
template <typename Holder, typename Options>
void check_as(const std::string& name, const Holder& holder, const Options& options) {
  using Impl = typename Holder::ContainedType;
  if (!holder.is_empty()) check_module(name, *holder.ptr(), *without_memory<Impl>(name, options));
}

// The parts of a layer beside those of one with its options in a stack of these sizes. Options that
// decide no size may have been set later, where a layer would refuse them.
template <typename Layer>
void check_parts_of_layer(const std::string& name, const Layer& layer,
                          const TransformerLayerOptions& stack) {
  TransformerLayerOptions options = layer.options;
  options.d_model(stack.d_model()).batch_first(stack.batch_first());
  options.dropout(0.0).dropouts(std::nullopt);
  if (options.window() >= 0) options.window(std::nullopt);  // a negative one is refused
  if (options.mixing() == Mixing::Attention && !options.bottleneck())
    options.num_heads(stack.num_heads());
  check_parts(name, layer, *without_memory<Layer>(name, options));
}

// Of one width; keys and values of another are apart.
void check_attention(const std::string& name, const MultiheadAttention& attention) {
  TORCH_CHECK_VALUE(attention.is_empty() || attention->in_proj_weight.defined(), "[freeze] ", name,
                    " must have keys and values of the width of queries. Got ",
                    c10::str(*attention.ptr()));
}

// The attention of a decoder's layer, which a StepDecoder runs too. All of a stack have the heads
// of its options, since each token has the keys and values of all layers side by side.
void check_in_decoder(const std::string& name, const MultiheadAttention& attention,
                      const TransformerLayerOptions& stack) {
  check_attention(name, attention);
  TORCH_CHECK_VALUE(attention->rotary.is_empty() && attention->q_norm.is_empty(), "[freeze] ", name,
                    " must be without a rotary embedding and norms of heads. Got ",
                    c10::str(*attention));
  const HeadSizes sizes = HeadSizes::of(attention->options);
  check_option(name, "num_kv_heads", sizes.kv_heads, stack.num_kv_heads().value_or(sizes.heads));
  check_option(name, "head_dim", sizes.head_dim,
               stack.head_dim().value_or(stack.d_model() / stack.num_heads()));
}

// What the layers of a stack have from one table.
void check_positions(const std::string& name, const TransformerXLAttention& attention,
                     const TransformerLayerOptions& stack) {
  TORCH_CHECK_VALUE(
      attention.is_empty() || attention->options.positions() == *stack.transformer_xl(),
      "[freeze] ", name, ": positions must be those of the rest of the model. Got others");
}
void check_positions(const std::string& name, const DisentangledAttention& attention,
                     const TransformerLayerOptions& stack) {
  if (attention.is_empty()) return;
  const DisentangledOptions &own = attention->options.positions(), &shared = *stack.disentangled();
  check_option(name, "max_relative_positions", own.max_relative_positions(),
               shared.max_relative_positions());
  check_option(name, "position_buckets", own.position_buckets(), shared.position_buckets());
}

void check_layer(const std::string& name, const TransformerEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_option(name, "norm_first", text(layer.options.norm_first()), text(stack.norm_first()));
  check_option(name, "disentangled", text(layer.options.disentangled().has_value()),
               text(stack.disentangled().has_value()));
  check_option(name, "transformer_xl", text(layer.options.transformer_xl().has_value()),
               text(stack.transformer_xl().has_value()));
  check_parts_of_layer(name, layer, stack);
  const std::string own = name + ".self_attn";
  check_attention(own, layer.self_attn);
  check_positions(own, layer.disentangled_attn, stack);
  check_positions(own, layer.transformer_xl_attn, stack);
}

void check_layer(const std::string& name, const TransformerDecoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_option(name, "norm_first", text(layer.options.norm_first()), text(stack.norm_first()));
  check_parts_of_layer(name, layer, stack);
  check_in_decoder(name + ".self_attn", layer.self_attn, stack);
  check_in_decoder(name + ".multihead_attn", layer.multihead_attn, stack);
  TORCH_CHECK_VALUE(layer.multihead_attn->relative_attention_bias.is_empty(), "[freeze] ", name,
                    ".multihead_attn must be without a relative position bias. Got one");
}

// The attention of a conformer whose input is rotated: queries and keys have rows of d_model each.
void check_rotated(const std::string& name, const MultiheadAttentionImpl& attention) {
  const HeadSizes sizes = HeadSizes::of(attention.options);
  check_option(name, "num_kv_heads", sizes.kv_heads, sizes.heads);
  check_option(name, "head_dim", sizes.head_dim, attention.options.embed_dim() / sizes.heads);
  TORCH_CHECK_VALUE(attention.rotary.is_empty() && attention.q_norm.is_empty(), "[freeze] ", name,
                    " must be without a rotary embedding and norms of heads, in a conformer that "
                    "rotates its input. Got ",
                    c10::str(attention));
}

void check_layer(const std::string& name, const ConformerEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_option(name, "transformer_xl", text(layer.options.transformer_xl().has_value()),
               text(stack.transformer_xl().has_value()));
  check_option(name, "rotary", text(!layer.rotary.is_empty()), text(stack.rotary().has_value()));
  check_parts_of_layer(name, layer, stack);
  check_attention(name + ".self_attn", layer.self_attn);
  check_positions(name + ".self_attn", layer.transformer_xl_attn, stack);
  if (layer.rotary) check_rotated(name + ".self_attn", *layer.self_attn);
  TORCH_CHECK_VALUE(layer.conv->batch_norm->options.track_running_stats(), "[freeze] ", name,
                    ".conv.batch_norm: track_running_stats must be true. Got false");
}

void check_layer(const std::string& name, const BottleneckEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  const BottleneckOptions& own = *layer.options.bottleneck();
  check_option(name, "intra_bottleneck_size", own.intra_bottleneck_size(),
               stack.bottleneck()->intra_bottleneck_size());
  check_option(name, "use_bottleneck", text(own.use_bottleneck()),
               text(stack.bottleneck()->use_bottleneck()));
  check_parts_of_layer(name, layer, stack);
  for (std::size_t i = 0; i < layer.ffn->size(); ++i) {
    const std::string inner = name + ".ffn." + std::to_string(i);
    const auto* const network = layer.ffn->ptr(i)->as<BottleneckFeedForwardImpl>();
    TORCH_CHECK_VALUE(network != nullptr, "[freeze] ", inner,
                      " must be a BottleneckFeedForward. Got a ", layer.ffn->ptr(i)->name());
    check_module(inner, *network, *without_memory<BottleneckFeedForwardImpl>(inner, layer.options));
  }
  const MultiheadAttentionImpl& attention = *layer.self_attn.ptr();
  const int64_t width = own.intra_bottleneck_size();
  const std::string inner = name + ".self_attn";
  const HeadSizes sizes = HeadSizes::of(attention.options);
  check_option(inner, "num_kv_heads", sizes.kv_heads, sizes.heads);
  check_option(inner, "head_dim", sizes.head_dim * sizes.heads, width);
  check_option(inner, "kdim", attention.options.kdim().value_or(width), width);
  const bool values_are_inner = own.use_bottleneck_attention() || !own.use_bottleneck();
  check_option(inner, "vdim", attention.options.vdim().value_or(width),
               values_are_inner ? width : stack.d_model());
  const bool is_plain = attention.rotary.is_empty() && attention.q_norm.is_empty() &&
                        attention.relative_attention_bias.is_empty();
  TORCH_CHECK_VALUE(is_plain, "[freeze] ", name,
                    ".self_attn must be without a rotary embedding, norms of heads and a relative "
                    "position bias. Got ",
                    c10::str(attention));
}

template <typename Layer, typename Stack>
void check_layers(const char* module, const Stack& stack, const std::string& prefix) {
  const auto& options = stack.options.layer();
  const std::string name = prefix + "layers";
  TORCH_CHECK_VALUE(!stack.layers->is_empty(), "[freeze] ", name,
                    " must contain at least one layer. Got no layer");
  for (size_t i = 0; i < stack.layers->size(); ++i) {
    check_layer(name + "." + std::to_string(i), layer_of<Layer>(module, stack.layers, i), options);
  }
  check_as(prefix + "norm", stack.norm, TransformerNormOptions(options.d_model()));
  if (const auto& bias = stack.relative_attention_bias) {
    check_as(prefix + "relative_attention_bias", bias,
             RelativePositionBiasOptions(bias->options).num_heads(options.num_heads()));
  }
}

}  // namespace

void check_tensor(const std::string& name, const at::Tensor& tensor, at::IntArrayRef sizes) {
  TORCH_CHECK_VALUE(tensor.defined(), "[freeze] ", name, " must be ", sizes,
                    ". Got an undefined tensor");
  TORCH_CHECK_VALUE(tensor.sizes() == sizes, "[freeze] ", name, " must be ", sizes, ". Got ",
                    tensor.sizes());
  TORCH_CHECK_TYPE(tensor.scalar_type() == at::kFloat, "[freeze] the model must be float32: ", name,
                   ". Got ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.is_cpu(), "[freeze] the model must be on the CPU: ", name, ". Got ",
                    tensor.device());
}

void check_freezable(const WindowEncoderImpl& encoder, const std::string& prefix) {
  TORCH_CHECK_VALUE(!encoder.stages->is_empty(), "[freeze] ", prefix,
                    "stages must contain at least one stage. Got no stage");
  int64_t width = encoder.options.first_layer().d_model();
  for (size_t i = 0; i < encoder.stages->size(); ++i) {
    const std::string name = prefix + "stages." + std::to_string(i) + ".";
    const WindowStageImpl& stage = encoder.stage(i);
    TORCH_CHECK_VALUE(!stage.layers->is_empty(), "[freeze] ", name,
                      "layers must contain at least one layer. Got no layer");
    for (size_t j = 0; j < stage.layers->size(); ++j) {
      const WindowEncoderLayerImpl& layer = stage.layer(j);
      const std::string own = name + "layers." + std::to_string(j);
      WindowEncoderLayerOptions options = layer.options;
      options.layer().d_model(width);
      check_parts(own, layer, *without_memory<WindowEncoderLayerImpl>(own, options));
    }
    if (!stage.downsample) continue;
    check_as(name + "downsample", stage.downsample,
             PatchMergingOptions(stage.downsample->options).d_model(width));
    width *= 2;
  }
  check_as(prefix + "norm", encoder.norm, LayerNormOptions(width));
}

void check_freezable(const TransformerEncoderImpl& encoder, const std::string& prefix) {
  const TransformerLayerOptions& options = encoder.options.layer();
  if (options.bottleneck())
    return check_layers<BottleneckEncoderLayerImpl>("BottleneckEncoder", encoder, prefix);
  if (options.transformer_xl()) module_of(prefix + "shifted_positions", encoder.shifted_positions);
  check_as(prefix + "shifted_positions", encoder.shifted_positions, options);
  if (options.conformer())
    return check_layers<ConformerEncoderLayerImpl>("ConformerEncoder", encoder, prefix);
  check_layers<TransformerEncoderLayerImpl>("TransformerEncoder", encoder, prefix);
  if (const auto& bias = encoder.grid_position_bias) {
    check_as(prefix + "grid_position_bias", bias,
             GridPositionBiasOptions(bias->options).num_heads(options.num_heads()));
  }
  if (options.disentangled())
    module_of(prefix + "relative_embeddings", encoder.relative_embeddings);
  check_as(prefix + "relative_embeddings", encoder.relative_embeddings, options);
  check_as(prefix + "conv", encoder.conv, options);
}

void check_freezable(const TransformerDecoderImpl& decoder, const std::string& prefix) {
  check_layers<TransformerDecoderLayerImpl>("TransformerDecoder", decoder, prefix);
}

void check_stack_options(const TransformerLayerOptions& stack, const std::string& name,
                         int64_t d_model) {
  check_option(name, "d_model", stack.d_model(), d_model);
  check_option(name, "batch_first", text(stack.batch_first()), text(true));
}

void check_freezable(const TokenAndPositionEmbeddingImpl& embedding, const std::string& name,
                     int64_t d_model) {
  const auto& tokens = module_of(name + ".token_embedding", embedding.token_embedding);
  check_token_options("freeze", tokens.options);
  const auto sizes_of = [](const at::Tensor& table, int64_t axis) {
    return table.defined() && table.dim() > axis ? table.size(axis) : 0;
  };
  check_tensor(name + ".token_embedding.weight", tokens.weight,
               {sizes_of(tokens.weight, 0), d_model});
  check_as(name + ".norm", embedding.norm, TransformerNormOptions(d_model));
  if (embedding.position_embedding) {
    const at::Tensor& rows = embedding.position_embedding->weight;
    return check_tensor(name + ".position_embedding.weight", rows, {sizes_of(rows, 0), d_model});
  }
  if (embedding.options.position_ids() == embeddings::PositionIds::None) return;
  const auto& position = module_of(name + ".position_encoding", embedding.position_encoding);
  TORCH_CHECK_VALUE(position.pe.defined(), "[freeze] ", name,
                    " must have a table of positions: TableSource::Buffer. Got no table");
  check_option(name + ".position_encoding", "batch_first", text(position.options.batch_first()),
               text(true));
  check_tensor(name + ".position_encoding.pe", position.pe, {1, sizes_of(position.pe, 1), d_model});
}

void check_output(const at::Tensor& weight, const at::Tensor& bias, const std::string& name,
                  int64_t d_model) {
  const int64_t vocab = weight.defined() && weight.dim() == 2 ? weight.size(0) : 0;
  check_tensor(name + ".weight", weight, {vocab, d_model});
  if (bias.defined()) check_tensor(name + ".bias", bias, {vocab});
}

}  // namespace posenc::inference
