// The checks of every module that freeze() takes.
//
// posenc-budget: the rules of every kind of layer, beside each other

#include "inference/layers/check_freezable.h"

#include <string>
#include <type_traits>

#include "core/print_fields.h"
#include "inference/attention/attention.h"
#include "inference/layers/module_parts.h"
#include "inference/layers/torch_fields.h"
#include "positions/nn/token_positions.h"
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

// Which axis is that of heads, as layers have it.
void check_rotary(const std::string& name, const RotaryEmbedding& rotary, rotary::HeadAxis axis) {
  if (rotary) check_same(name + ".rotary", "head_axis", rotary->options.head_axis(), axis);
}

// Of one width; keys and values of another are apart.
void check_attention(const std::string& name, const MultiheadAttention& attention) {
  if (attention.is_empty()) return;
  TORCH_CHECK_VALUE(attention->in_proj_weight.defined(), "[freeze] ", name,
                    " must have keys and values of the width of queries. Got ",
                    c10::str(*attention.ptr()));
  check_rotary(name, attention->rotary, rotary::HeadAxis::BeforeLength);
}

// With heads of these sizes, of queries and keys as they are projected.
void check_plain(const std::string& name, const MultiheadAttentionImpl& attention, int64_t kv_heads,
                 int64_t head_dim) {
  const MultiheadAttentionOptions& own = attention.options;
  const bool is_changed = !attention.q_norm.is_empty() || own.value_norm() || own.qkv_clip() ||
                          own.softcap() || own.query_growth();
  TORCH_CHECK_VALUE(attention.rotary.is_empty() && !is_changed, "[freeze] ", name,
                    " must be without a rotary embedding, norms of heads, qkv_clip, softcap and "
                    "query_growth. Got ",
                    c10::str(attention));
  const HeadSizes sizes = HeadSizes::of(attention.options);
  check_same(name, "num_kv_heads", sizes.kv_heads, kv_heads);
  check_same(name, "head_dim", sizes.head_dim, head_dim);
}

// `also` is what the rule says besides.
void check_no_bias(const std::string& name, const MultiheadAttentionImpl& attention,
                   const char* also = "") {
  TORCH_CHECK_VALUE(attention.relative_attention_bias.is_empty(), "[freeze] ", name,
                    " must be without a relative position bias", also, ". Got one");
}

// What the layers of a stack have from one table.
void check_positions(const std::string& name, const TransformerXLAttention& attention,
                     const TransformerLayerOptions& stack) {
  if (!attention.is_empty())
    check_same(name, "positions", attention->options.positions(), *stack.transformer_xl());
}
void check_positions(const std::string& name, const DisentangledAttention& attention,
                     const TransformerLayerOptions& stack) {
  if (attention.is_empty()) return;
  const DisentangledOptions &own = attention->options.positions(), &shared = *stack.disentangled();
  check_same(name, "max_relative_positions", own.max_relative_positions(),
             shared.max_relative_positions());
  check_same(name, "position_buckets", own.position_buckets(), shared.position_buckets());
}

void check_layer(const std::string& name, const TransformerEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_same(name, "norm_first", layer.options.norm_first(), stack.norm_first());
  check_same(name, "disentangled", layer.options.disentangled().has_value(),
             stack.disentangled().has_value());
  check_same(name, "transformer_xl", layer.options.transformer_xl().has_value(),
             stack.transformer_xl().has_value());
  if (layer.options.mixing() != Mixing::Attention)  // otherwise its attention has it
    check_same(name, "batch_first", layer.options.batch_first(), stack.batch_first());
  check_parts_of_layer(name, layer, stack);
  const std::string own = name + ".self_attn";
  check_attention(own, layer.self_attn);
  check_positions(own, layer.disentangled_attn, stack);
  check_positions(own, layer.transformer_xl_attn, stack);
}

void check_layer(const std::string& name, const TransformerDecoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_same(name, "norm_first", layer.options.norm_first(), stack.norm_first());
  check_parts_of_layer(name, layer, stack);
  // Each token has the keys and values of all layers side by side.
  const int64_t heads = stack.num_heads();
  const auto check_heads = [&](const std::string& own, const MultiheadAttention& attention) {
    check_attention(own, attention);
    check_plain(own, *attention, stack.num_kv_heads().value_or(heads),
                stack.head_dim().value_or(stack.d_model() / heads));
  };
  check_heads(name + ".self_attn", layer.self_attn);
  check_heads(name + ".multihead_attn", layer.multihead_attn);
  check_no_bias(name + ".multihead_attn", *layer.multihead_attn);
}

void check_layer(const std::string& name, const ConformerEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_same(name, "transformer_xl", layer.options.transformer_xl().has_value(),
             stack.transformer_xl().has_value());
  check_same(name, "rotary", !layer.rotary.is_empty(), stack.rotary().has_value());
  check_parts_of_layer(name, layer, stack);
  check_attention(name + ".self_attn", layer.self_attn);
  check_positions(name + ".self_attn", layer.transformer_xl_attn, stack);
  if (layer.rotary) {  // of rows of d_model, before they are projected
    check_rotary(name, layer.rotary, rotary::HeadAxis::AfterLength);
    check_plain(name + ".self_attn", *layer.self_attn, stack.num_heads(),
                stack.d_model() / stack.num_heads());
  }
  TORCH_CHECK_VALUE(layer.conv->batch_norm->options.track_running_stats(), "[freeze] ", name,
                    ".conv.batch_norm: track_running_stats must be true. Got false");
}

void check_layer(const std::string& name, const BottleneckEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  const BottleneckOptions& own = *layer.options.bottleneck();
  check_same(name, "intra_bottleneck_size", own.intra_bottleneck_size(),
             stack.bottleneck()->intra_bottleneck_size());
  check_same(name, "use_bottleneck", own.use_bottleneck(), stack.bottleneck()->use_bottleneck());
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
  const int64_t heads = layer.options.num_heads();
  check_plain(inner, attention, heads, width / heads);
  check_no_bias(inner, attention);
  check_same(inner, "kdim", attention.options.kdim().value_or(width), width);
  const bool values_are_inner = own.use_bottleneck_attention() || !own.use_bottleneck();
  check_same(inner, "vdim", attention.options.vdim().value_or(width),
             values_are_inner ? width : stack.d_model());
}

// The first of what a stack adds to the scores of all its layers; null if there is nothing.
template <typename Stack>
const char* term_of(const Stack& stack) {
  if (stack.relative_attention_bias) return "relative_attention_bias";
  if (stack.options.alibi()) return "alibi";
  if constexpr (std::is_same_v<Stack, TransformerEncoderImpl>) {
    if (stack.grid_position_bias) return "grid_position_bias";
  }
  return nullptr;
}

std::string mixing_name(const TransformerLayerOptions& options) {
  if (options.bottleneck()) return "a bottleneck";
  if (options.disentangled()) return "disentangled attention";
  if (options.transformer_xl()) return "Transformer-XL's attention";
  return "Mixing::" + std::string(fields::name_of_enumerator(options.mixing()));
}

// A module adds a stack's terms to the scores of every attention, a frozen model to those of some.
template <typename Layer>
void check_term(const std::string& name, const Layer& layer, const char* term) {
  const TransformerLayerOptions& options = layer.options;
  if (term == nullptr || options.mixing() == Mixing::Fourier) return;  // which has no scores
  TORCH_CHECK_VALUE(!layer.self_attn.is_empty() && !options.bottleneck(), "[freeze] ", name,
                    " must be of Mixing::Attention without a bottleneck, disentangled or "
                    "Transformer-XL's attention, since the stack has ",
                    term, ". Got ", mixing_name(options));
}

template <typename Layer, typename Stack>
void check_layers(const char* module, const Stack& stack, const std::string& prefix) {
  const auto& options = stack.options.layer();
  const std::string name = prefix + "layers";
  TORCH_CHECK_VALUE(!stack.layers->is_empty(), "[freeze] ", name,
                    " must contain at least one layer. Got no layer");
  const auto& bias = stack.relative_attention_bias;
  for (size_t i = 0; i < stack.layers->size(); ++i) {
    const std::string own = name + "." + std::to_string(i);
    const Layer& layer = layer_of<Layer>(module, stack.layers, i);
    check_layer(own, layer, options);
    check_term(own, layer, term_of(stack));
    if (bias && layer.self_attn)
      check_no_bias(own + ".self_attn", *layer.self_attn, ", since the stack has one");
  }
  check_as(prefix + "norm", stack.norm, TransformerNormOptions(options.d_model()));
  if (bias) {
    check_as(prefix + "relative_attention_bias", bias,
             RelativePositionBiasOptions(bias->options).num_heads(options.num_heads()));
  }
}

// What is added to the rows of an embedding.
void check_sinusoid(const std::string& name, const PositionalEncoding& holder, int64_t d_model) {
  const std::string own = name + ".position_encoding";
  const auto& position = module_of(own, holder);
  TORCH_CHECK_VALUE(position.pe.defined(), "[freeze] ", name,
                    " must have a table of positions: TableSource::Buffer. Got no table");
  check_same(own, "batch_first", position.options.batch_first(), true);
  check_same(own, "table_source", position.options.table_source(), TableSource::Buffer);
  check_tensor(own + ".pe", position.pe,
               {1, position.pe.dim() > 1 ? position.pe.size(1) : 0, d_model});
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
  if (options.transformer_xl()) module_of(prefix + "shifted_positions", encoder.shifted_positions);
  if (options.disentangled())
    module_of(prefix + "relative_embeddings", encoder.relative_embeddings);
  check_as(prefix + "shifted_positions", encoder.shifted_positions, options);
  check_as(prefix + "relative_embeddings", encoder.relative_embeddings, options);
  check_as(prefix + "conv", encoder.conv, options);
  if (const auto& bias = encoder.grid_position_bias) {
    check_as(prefix + "grid_position_bias", bias,
             GridPositionBiasOptions(bias->options).num_heads(options.num_heads()));
  }
  if (const auto width = options.per_layer_input()) {
    check_tensor(prefix + "per_layer_projection.weight",
                 module_of(prefix + "per_layer_projection", encoder.per_layer_projection).weight,
                 {static_cast<int64_t>(encoder.layers->size()) * *width, options.d_model()});
    check_as(prefix + "per_layer_norm", encoder.per_layer_norm, TransformerNormOptions(*width));
  }
  if (options.bottleneck())
    return check_layers<BottleneckEncoderLayerImpl>("BottleneckEncoder", encoder, prefix);
  if (options.conformer())
    return check_layers<ConformerEncoderLayerImpl>("ConformerEncoder", encoder, prefix);
  check_layers<TransformerEncoderLayerImpl>("TransformerEncoder", encoder, prefix);
}

void check_freezable(const TransformerDecoderImpl& decoder, const std::string& prefix) {
  check_layers<TransformerDecoderLayerImpl>("TransformerDecoder", decoder, prefix);
}

void check_stack_options(const TransformerLayerOptions& stack, const std::string& name,
                         int64_t d_model) {
  check_same(name, "d_model", stack.d_model(), d_model);
  check_same(name, "batch_first", stack.batch_first(), true);
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
  if (embedding.options.position_ids() == embeddings::PositionIds::None) return;
  if (reads_trained_rows(embedding)) {
    const at::Tensor& rows = embedding.position_embedding.ptr()->weight;
    return check_tensor(name + ".position_embedding.weight", rows, {sizes_of(rows, 0), d_model});
  }
  check_sinusoid(name, embedding.position_encoding, d_model);
}

void check_freezable(const AudioEmbeddingsImpl& embeddings, const std::string& name,
                     int64_t d_model) {
  const AudioEmbeddingsOptions& options = embeddings.options;
  check_same(name, "d_model", options.d_model(), d_model);
  const auto like = without_memory<AudioEmbeddingsImpl>(name, options);
  check_parts(name, embeddings, *like);
  const auto check_convolution = [&](const char* part, const torch::nn::Conv1d& own,
                                     const torch::nn::Conv1d& other) {
    TORCH_CHECK_VALUE(
        !fields::differ(own->options, other->options, fields::Which::EvalMode), "[freeze] ", name,
        part, " must be the convolution that its embeddings make. ", "Got one with other options");
  };
  check_convolution(".conv1", embeddings.conv1, like->conv1);
  check_convolution(".conv2", embeddings.conv2, like->conv2);
  if (embeddings.position_embedding) return;
  check_sinusoid(name, embeddings.position_encoding, d_model);
  check_tensor(name + ".position_encoding.pe", embeddings.position_encoding->pe,
               {1, options.num_positions(), d_model});
}

void check_output(const at::Tensor& weight, const at::Tensor& bias, const std::string& name,
                  int64_t d_model) {
  const int64_t vocab = weight.defined() && weight.dim() == 2 ? weight.size(0) : 0;
  check_tensor(name + ".weight", weight, {vocab, d_model});
  if (bias.defined()) check_tensor(name + ".bias", bias, {vocab});
}

}  // namespace posenc::inference
