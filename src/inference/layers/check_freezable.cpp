// The checks of every module that freeze() takes.
//
// posenc-budget: one rule a module, in the order of a model

#include "inference/layers/check_freezable.h"

#include "inference/attention/attention.h"
#include "positions/nn/weights.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

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

void check_bias(const std::string& name, const at::Tensor& bias, int64_t width) {
  if (bias.defined()) check_tensor(name, bias, {width});
}

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

void check_linear(const std::string& name, const torch::nn::Linear& holder, int64_t in,
                  int64_t out) {
  const auto& linear = module_of(name, holder);
  check_tensor(name + ".weight", linear.weight, {out, in});
  check_bias(name + ".bias", linear.bias, out);
}

void check_norm(const std::string& name, const TransformerNorm& holder, int64_t width) {
  const auto& norm = module_of(name, holder);
  check_option(name, "d_model", norm.options.d_model(), width);
  check_tensor(name + ".weight", norm.weight, {width});
  check_bias(name + ".bias", norm.bias, width);
}

void check_scale(const std::string& name, const LayerScale& holder, int64_t width) {
  if (!holder.is_empty()) check_tensor(name + ".lambda1", holder->lambda1, {width});
}

// The attention of a decoder's layer, which a StepDecoder runs too. All of a stack have the heads
// of its options, since each token has the keys and values of all layers side by side.
void check_in_decoder(const std::string& name, const MultiheadAttention& holder,
                      const TransformerLayerOptions& stack) {
  const auto& attention = module_of(name, holder);
  TORCH_CHECK_VALUE(attention.rotary.is_empty() && attention.q_norm.is_empty(), "[freeze] ", name,
                    " must be without a rotary embedding and norms of heads. Got ",
                    c10::str(attention));
  const HeadSizes sizes = HeadSizes::of(attention.options);
  check_option(name, "num_kv_heads", sizes.kv_heads, stack.num_kv_heads().value_or(sizes.heads));
  check_option(name, "head_dim", sizes.head_dim,
               stack.head_dim().value_or(stack.d_model() / stack.num_heads()));
}

void check_relative(const std::string& name, const RelativePositionBias& holder, int64_t heads) {
  if (holder.is_empty()) return;
  check_option(name, "num_heads", holder->options.num_heads(), heads);
  check_tensor(name + ".weight", holder->weight, {relative_rows(holder->options.index()), heads});
}

void check_grid_bias(const std::string& name, const GridPositionBias& holder, int64_t heads) {
  if (holder.is_empty()) return;
  check_option(name, "num_heads", holder->options.num_heads(), heads);
  const relative::Grid grid = holder->options.grid();
  check_tensor(name + ".weight", holder->weight,
               {(2 * grid.height - 1) * (2 * grid.width - 1) + 3, heads});
}

void check_attention(const std::string& name, const MultiheadAttention& holder,
                     const TransformerLayerOptions& stack) {
  const auto& attention = module_of(name, holder);
  const auto& own = attention.options;
  const int64_t width = stack.d_model();
  TORCH_CHECK_VALUE(attention.in_proj_weight.defined(), "[freeze] ", name,
                    " must have keys and values of the width of queries. Got ",
                    c10::str(attention));
  check_option(name, "embed_dim", own.embed_dim(), width);
  check_option(name, "num_heads", own.num_heads(), stack.num_heads());
  check_option(name, "batch_first", text(own.batch_first()), text(stack.batch_first()));
  const HeadSizes sizes = HeadSizes::of(own);
  TORCH_CHECK_VALUE(sizes.kv_heads > 0 && sizes.heads % sizes.kv_heads == 0, "[freeze] ", name,
                    ": num_kv_heads must divide num_heads ", sizes.heads, ". Got ", sizes.kv_heads);
  check_tensor(name + ".in_proj_weight", attention.in_proj_weight, {sizes.width(), width});
  check_bias(name + ".in_proj_bias", attention.in_proj_bias, sizes.width());
  check_linear(name + ".out_proj", attention.out_proj, sizes.query_width(), width);
  check_relative(name + ".relative_attention_bias", attention.relative_attention_bias, sizes.heads);
  if (attention.q_norm) check_norm(name + ".q_norm", attention.q_norm, sizes.head_dim);
  if (attention.q_norm) check_norm(name + ".k_norm", attention.k_norm, sizes.head_dim);
}

void check_disentangled(const std::string& name, const DisentangledAttention& holder,
                        const TransformerLayerOptions& stack) {
  const auto& attention = module_of(name, holder);
  const int64_t width = stack.d_model();
  const DisentangledOptions& positions = attention.options.positions();
  const std::string inner = name + ".";
  check_option(name, "max_relative_positions", positions.max_relative_positions(),
               stack.disentangled()->max_relative_positions());
  check_option(name, "position_buckets", positions.position_buckets(),
               stack.disentangled()->position_buckets());
  check_option(name, "embed_dim", attention.options.embed_dim(), width);
  check_option(name, "num_heads", attention.options.num_heads(), stack.num_heads());
  check_tensor(inner + "in_proj_weight", attention.in_proj_weight, {3 * width, width});
  check_tensor(inner + "in_proj_bias", attention.in_proj_bias, {3 * width});
  check_linear(inner + "out_proj", attention.out_proj, width, width);
  if (attention.pos_key) check_linear(inner + "pos_key", attention.pos_key, width, width);
  if (attention.pos_query) check_linear(inner + "pos_query", attention.pos_query, width, width);
}

void check_transformer_xl(const std::string& name, const TransformerXLAttention& holder,
                          const TransformerLayerOptions& stack) {
  const auto& attention = module_of(name, holder);
  const int64_t width = stack.d_model(), heads = stack.num_heads();
  const std::string inner = name + ".";
  check_option(name, "embed_dim", attention.options.embed_dim(), width);
  check_option(name, "num_heads", attention.options.num_heads(), heads);
  TORCH_CHECK_VALUE(attention.options.positions() == *stack.transformer_xl(), "[freeze] ", name,
                    ": positions must be those of the rest of the model. Got others");
  check_tensor(inner + "in_proj_weight", attention.in_proj_weight, {3 * width, width});
  check_bias(inner + "in_proj_bias", attention.in_proj_bias, 3 * width);
  check_linear(inner + "out_proj", attention.out_proj, width, width);
  check_linear(inner + "position_proj", attention.position_proj, width, width);
  check_tensor(inner + "content_bias", attention.content_bias, {heads, width / heads});
  check_tensor(inner + "position_bias", attention.position_bias, {heads, width / heads});
  if (!stack.transformer_xl()->segments()) return;
  check_tensor(inner + "segment_bias", attention.segment_bias, {heads, width / heads});
  check_tensor(inner + "segment_embed", attention.segment_embed, {2, heads, width / heads});
}

// What mixes the rows of a layer.
void check_mixer(const std::string& name, const TransformerEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  const std::string own = name + ".self_attn";
  check_option(name, "disentangled", text(!layer.disentangled_attn.is_empty()),
               text(stack.disentangled().has_value()));
  check_option(name, "transformer_xl", text(!layer.transformer_xl_attn.is_empty()),
               text(stack.transformer_xl().has_value()));
  const bool is_relative = stack.disentangled() || stack.transformer_xl();
  TORCH_CHECK_VALUE(!is_relative || layer.options.mixing() == Mixing::Attention, "[freeze] ", name,
                    ": mixing must be Mixing::Attention, as in the rest of the model. Got another");
  TORCH_CHECK_VALUE((!is_relative && layer.options.mixing() == Mixing::Attention) ||
                        (layer.layer_scale1.is_empty() && layer.post_norm1.is_empty()),
                    "[freeze] ", name,
                    " must be without layer_scale1 and post_norm1, except with a "
                    "MultiheadAttention. Got one");
  if (stack.disentangled()) return check_disentangled(own, layer.disentangled_attn, stack);
  if (stack.transformer_xl()) return check_transformer_xl(own, layer.transformer_xl_attn, stack);
  if (layer.options.mixing() == Mixing::Attention) check_attention(own, layer.self_attn, stack);
}
void check_mixer(const std::string& name, const TransformerDecoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_attention(name + ".self_attn", layer.self_attn, stack);
}

// A pre-norm layer of an encoder may lack the norm of its attention.
bool has_no_norm1(const TransformerEncoderLayerImpl& layer) {
  return layer.options.norm_first() && layer.norm1.is_empty();
}
bool has_no_norm1(const TransformerDecoderLayerImpl&) { return false; }

void check_convolution(const std::string& name, const TransformerEncoderLayerImpl& layer,
                       int64_t embed_dim) {
  if (layer.options.mixing() != Mixing::Convolution) return;
  const auto& attention = module_of(name + ".conv_attn", layer.conv_attn);
  check_option(name + ".conv_attn", "embed_dim", attention.options.embed_dim(), embed_dim);
  const int64_t width = embed_dim / 2, kernel_size = attention.options.conv_kernel_size();
  const std::string inner = name + ".conv_attn.";
  check_tensor(inner + "in_proj_weight", attention.in_proj_weight, {3 * width, embed_dim});
  check_tensor(inner + "in_proj_bias", attention.in_proj_bias, {3 * width});
  check_tensor(inner + "depthwise_weight", attention.depthwise_weight, {embed_dim, kernel_size});
  check_linear(inner + "pointwise", attention.pointwise, embed_dim, width);
  check_linear(inner + "kernel", attention.kernel, width,
               attention.options.num_heads() * kernel_size);
  check_linear(inner + "conv_out", attention.conv_out, embed_dim, width);
  check_linear(inner + "out_proj", attention.out_proj, embed_dim, embed_dim);
}
void check_convolution(const std::string&, const TransformerDecoderLayerImpl&, int64_t) {}

// What the two kinds of layer have in common. Each layer may have an activation and a d_ff of its
// own.
template <typename Layer>
void check_common(const std::string& name, const Layer& layer,
                  const TransformerLayerOptions& stack) {
  const int64_t width = stack.d_model();
  check_option(name, "norm_first", text(layer.options.norm_first()), text(stack.norm_first()));
  check_mixer(name, layer, stack);
  check_convolution(name, layer, width);
  const at::Tensor& wide = module_of(name + ".linear1", layer.linear1).weight;
  const int64_t parts = layer.options.feed_forward() == posenc::FeedForward::Gated ? 2 : 1;
  const int64_t d_ff =
      wide.defined() && wide.dim() == 2 ? wide.size(0) / parts : layer.options.d_ff();
  check_linear(name + ".linear1", layer.linear1, width, parts * d_ff);
  check_linear(name + ".linear2", layer.linear2, d_ff, width);
  if (!has_no_norm1(layer)) check_norm(name + ".norm1", layer.norm1, width);
  check_norm(name + ".norm2", layer.norm2, width);
  check_scale(name + ".layer_scale1", layer.layer_scale1, width);
  check_scale(name + ".layer_scale2", layer.layer_scale2, width);
}

void check_layer(const std::string& name, const TransformerEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_common(name, layer, stack);
  const int64_t width = stack.d_model();
  check_grid_bias(name + ".grid_position_bias", layer.grid_position_bias, stack.num_heads());
  TORCH_CHECK_VALUE(
      stack.norm_first() || (layer.post_norm1.is_empty() && layer.post_norm2.is_empty()),
      "[freeze] ", name,
      " must be without post_norm1 and post_norm2, except with norm_first. Got one");
  if (layer.post_norm1) check_norm(name + ".post_norm1", layer.post_norm1, width);
  if (layer.post_norm2) check_norm(name + ".post_norm2", layer.post_norm2, width);
}

void check_layer(const std::string& name, const TransformerDecoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  check_common(name, layer, stack);
  check_attention(name + ".multihead_attn", layer.multihead_attn, stack);
  check_in_decoder(name + ".self_attn", layer.self_attn, stack);
  check_in_decoder(name + ".multihead_attn", layer.multihead_attn, stack);
  TORCH_CHECK_VALUE(layer.multihead_attn->relative_attention_bias.is_empty(), "[freeze] ", name,
                    ".multihead_attn must be without a relative position bias. Got one");
  check_norm(name + ".norm3", layer.norm3, stack.d_model());
  check_scale(name + ".layer_scale3", layer.layer_scale3, stack.d_model());
}

void check_network(const std::string& name, const torch::nn::Module& module, int64_t width,
                   int64_t d_ff) {
  const auto* const network = module.as<BottleneckFeedForwardImpl>();
  TORCH_CHECK_VALUE(network != nullptr, "[freeze] ", name,
                    " must be a BottleneckFeedForward. Got a ", module.name());
  check_linear(name + ".linear1", network->linear1, width, d_ff);
  check_linear(name + ".linear2", network->linear2, d_ff, width);
  check_norm(name + ".norm", network->norm, width);
}

// A projection with its norm, which an option leaves out.
void check_normed(const std::string& name, const torch::nn::Linear& linear,
                  const TransformerNorm& norm, bool is_there, int64_t in, int64_t out) {
  if (!is_there && linear.is_empty()) return;
  check_linear(name, linear, in, out);
  check_norm(name + "_norm", norm, out);
}

void check_layer(const std::string& name, const BottleneckEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  const BottleneckOptions& own = *layer.options.bottleneck();
  const int64_t outer = stack.d_model(), width = own.intra_bottleneck_size();
  const int64_t d_ff = layer.options.d_ff();
  check_option(name, "intra_bottleneck_size", width, stack.bottleneck()->intra_bottleneck_size());
  check_option(name, "use_bottleneck", text(own.use_bottleneck()),
               text(stack.bottleneck()->use_bottleneck()));
  const bool shares = own.use_bottleneck() && own.key_query_shared_bottleneck();
  check_normed(name + ".input", layer.input, layer.input_norm, own.use_bottleneck(), outer, width);
  check_normed(name + ".shared", layer.shared, layer.shared_norm, shares, outer, width);
  check_normed(name + ".output", layer.output, layer.output_norm, own.use_bottleneck(), width,
               outer);
  const auto& attention = module_of(name + ".self_attn", layer.self_attn);
  const std::string in_attention = name + ".self_attn.";
  if (attention.in_proj_weight.defined()) {
    check_tensor(in_attention + "in_proj_weight", attention.in_proj_weight, {3 * width, width});
  } else {
    check_tensor(in_attention + "q_proj_weight", attention.q_proj_weight, {width, width});
    check_tensor(in_attention + "k_proj_weight", attention.k_proj_weight, {width, width});
    check_tensor(in_attention + "v_proj_weight", attention.v_proj_weight, {width, outer});
  }
  check_bias(in_attention + "in_proj_bias", attention.in_proj_bias, 3 * width);
  const HeadSizes sizes = HeadSizes::of(attention.options);
  check_option(name + ".self_attn", "embed_dim", attention.options.embed_dim(), width);
  check_option(name + ".self_attn", "num_kv_heads", sizes.kv_heads, sizes.heads);
  check_option(name + ".self_attn", "head_dim", sizes.head_dim * sizes.heads, width);
  check_option(name + ".self_attn", "batch_first", text(attention.options.batch_first()),
               text(stack.batch_first()));
  const bool is_plain = attention.rotary.is_empty() && attention.q_norm.is_empty() &&
                        attention.relative_attention_bias.is_empty();
  TORCH_CHECK_VALUE(is_plain, "[freeze] ", name,
                    ".self_attn must be without a rotary embedding, norms of heads and a relative "
                    "position bias. Got ",
                    c10::str(attention));
  check_linear(in_attention + "out_proj", attention.out_proj, width, width);
  check_norm(name + ".norm1", layer.norm1, width);
  for (std::size_t i = 0; i < layer.ffn->size(); ++i)
    check_network(name + ".ffn." + std::to_string(i), *layer.ffn->ptr(i), width, d_ff);
  check_network(name + ".last_ffn", module_of(name + ".last_ffn", layer.last_ffn), width, d_ff);
}

void check_network(const std::string& name, const ConformerFeedForward& holder, int64_t width,
                   int64_t d_ff) {
  const auto& network = module_of(name, holder);
  check_norm(name + ".norm", network.norm, width);
  check_linear(name + ".linear1", network.linear1, width, d_ff);
  check_linear(name + ".linear2", network.linear2, d_ff, width);
}

void check_convolution(const std::string& name, const ConformerConvolution& holder,
                       const TransformerLayerOptions& options) {
  const auto& conv = module_of(name, holder);
  const int64_t width = options.d_model();
  check_norm(name + ".norm", conv.norm, width);
  check_linear(name + ".pointwise1", conv.pointwise1, width, 2 * width);
  check_linear(name + ".pointwise2", conv.pointwise2, width, width);
  const int64_t size = options.conformer()->conv_kernel_size();
  check_tensor(name + ".depthwise_weight", conv.depthwise_weight, {width, size});
  const auto& norm = module_of(name + ".batch_norm", conv.batch_norm);
  TORCH_CHECK_VALUE(norm.options.track_running_stats(), "[freeze] ", name,
                    ".batch_norm: track_running_stats must be true. Got false");
  for (const auto& [part, tensor] :
       {std::pair<const char*, const at::Tensor&>{"weight", norm.weight},
        {"bias", norm.bias},
        {"running_mean", norm.running_mean},
        {"running_var", norm.running_var}}) {
    check_tensor(name + ".batch_norm." + part, tensor, {width});
  }
}

void check_layer(const std::string& name, const ConformerEncoderLayerImpl& layer,
                 const TransformerLayerOptions& stack) {
  const int64_t width = stack.d_model(), d_ff = layer.options.d_ff();
  const bool is_transformer_xl = !layer.transformer_xl_attn.is_empty();
  check_option(name, "transformer_xl", text(is_transformer_xl),
               text(stack.transformer_xl().has_value()));
  check_option(name, "rotary", text(!layer.rotary.is_empty()), text(stack.rotary().has_value()));
  check_network(name + ".ffn1", layer.ffn1, width, d_ff);
  check_norm(name + ".norm1", layer.norm1, width);
  if (is_transformer_xl) {
    check_transformer_xl(name + ".self_attn", layer.transformer_xl_attn, stack);
  } else {
    check_attention(name + ".self_attn", layer.self_attn, stack);
    TORCH_CHECK_VALUE(layer.self_attn->relative_attention_bias.is_empty(), "[freeze] ", name,
                      ".self_attn must be without a relative position bias. Got one");
  }
  check_convolution(name + ".conv", layer.conv, layer.options);
  check_network(name + ".ffn2", layer.ffn2, width, d_ff);
  check_norm(name + ".norm2", layer.norm2, width);
}

// What the layers' tables of distances are computed from.
void check_table_positions(const TransformerEncoderImpl& encoder, const std::string& prefix) {
  const auto& own = encoder.options.layer().transformer_xl();
  if (!own) return;
  const std::string name = prefix + "shifted_positions";
  const auto& positions = module_of(name, encoder.shifted_positions);
  TORCH_CHECK_VALUE(positions.options.transformer_xl() == own, "[freeze] ", name,
                    ": transformer_xl must be that of the rest of the model. Got another");
}

void check_beside_layers(const TransformerEncoderImpl& encoder, const std::string& prefix) {
  const TransformerLayerOptions& stack = encoder.options.layer();
  const DisentangledOptions& own = *stack.disentangled();
  const int64_t width = stack.d_model();
  const auto& relative = module_of(prefix + "relative_embeddings", encoder.relative_embeddings);
  const std::string name = prefix + "relative_embeddings.";
  if (own.relative_attention())
    check_tensor(name + "weight", relative.weight, {2 * own.span(), width});
  if (relative.norm) check_norm(name + "norm", relative.norm, width);
  if (!encoder.conv) return;
  const auto& conv = module_of(prefix + "conv.conv", encoder.conv->conv);
  const int64_t part = width / own.conv_groups();
  check_tensor(prefix + "conv.conv.weight", conv.weight, {width, part, own.conv_kernel_size()});
  check_tensor(prefix + "conv.conv.bias", conv.bias, {width});
  check_norm(prefix + "conv.norm", encoder.conv->norm, width);
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
  if (!stack.norm.is_empty()) check_norm(prefix + "norm", stack.norm, options.d_model());
  check_relative(prefix + "relative_attention_bias", stack.relative_attention_bias,
                 options.num_heads());
}

void check_window_positions(const std::string& name, const WindowAttentionImpl& attention) {
  const relative::Grid window = attention.options.windows().window();
  const int64_t heads = attention.options.num_heads(), hidden = 512;
  const int64_t down = 2 * window.height - 1, across = 2 * window.width - 1;
  const int64_t width = attention.options.embed_dim() / heads;
  switch (attention.options.windows().positions()) {
    case WindowPositions::None: break;
    case WindowPositions::Table:
      check_tensor(name + "relative_position_bias_table", attention.relative_position_bias_table,
                   {down * across, heads});
      break;
    case WindowPositions::Continuous:
      check_tensor(name + "logit_scale", attention.logit_scale, {heads, 1, 1});
      check_linear(name + "coordinates", attention.coordinates, 2, hidden);
      check_linear(name + "entries", attention.entries, hidden, heads);
      break;
    case WindowPositions::Axes:
      check_tensor(name + "rel_pos_h", attention.rel_pos_h, {down, width});
      check_tensor(name + "rel_pos_w", attention.rel_pos_w, {across, width});
      break;
  }
}

void check_window_layer(const std::string& name, const WindowEncoderLayerImpl& layer,
                        int64_t width) {
  const auto& attention = module_of(name + ".self_attn", layer.self_attn);
  const std::string own = name + ".self_attn", inner = own + ".";
  const int64_t d_ff = layer.options.layer().d_ff();
  const bool is_gated = layer.options.layer().feed_forward() == posenc::FeedForward::Gated;
  check_option(own, "embed_dim", attention.options.embed_dim(), width);
  check_tensor(inner + "in_proj_weight", attention.in_proj_weight, {3 * width, width});
  check_bias(inner + "in_proj_bias", attention.in_proj_bias, 3 * width);
  check_linear(inner + "out_proj", attention.out_proj, width, width);
  const relative::Grid expected = layer.options.windows().window();
  check_option(own, "the rows of a window", attention.options.windows().window().height,
               expected.height);
  check_option(own, "the columns of a window", attention.options.windows().window().width,
               expected.width);
  check_window_positions(inner, attention);
  check_norm(name + ".norm1", layer.norm1, width);
  check_linear(name + ".linear1", layer.linear1, width, (is_gated ? 2 : 1) * d_ff);
  check_linear(name + ".linear2", layer.linear2, d_ff, width);
  check_norm(name + ".norm2", layer.norm2, width);
}

void check_layer_norm(const std::string& name, const LayerNorm& holder, int64_t width) {
  const auto& norm = module_of(name, holder);
  check_tensor(name + ".weight", norm.weight, {width});
  check_bias(name + ".bias", norm.bias, width);
}

}  // namespace

void check_freezable(const WindowEncoderImpl& encoder, const std::string& prefix) {
  TORCH_CHECK_VALUE(!encoder.stages->is_empty(), "[freeze] ", prefix,
                    "stages must contain at least one stage. Got no stage");
  int64_t width = encoder.options.first_layer().d_model();
  for (size_t i = 0; i < encoder.stages->size(); ++i) {
    const std::string name = prefix + "stages." + std::to_string(i) + ".";
    const WindowStageImpl& stage = encoder.stage(i);
    TORCH_CHECK_VALUE(!stage.layers->is_empty(), "[freeze] ", name,
                      "layers must contain at least one layer. Got no layer");
    for (size_t j = 0; j < stage.layers->size(); ++j)
      check_window_layer(name + "layers." + std::to_string(j), stage.layer(j), width);
    if (!stage.downsample) continue;
    const bool first = stage.downsample->options.norm_first();
    check_linear(name + "downsample.reduction", stage.downsample->reduction, 4 * width, 2 * width);
    check_layer_norm(name + "downsample.norm", stage.downsample->norm, (first ? 4 : 2) * width);
    width *= 2;
  }
  if (encoder.norm) check_layer_norm(prefix + "norm", encoder.norm, width);
}

void check_freezable(const TransformerEncoderImpl& encoder, const std::string& prefix) {
  const TransformerLayerOptions& options = encoder.options.layer();
  if (options.bottleneck())
    return check_layers<BottleneckEncoderLayerImpl>("BottleneckEncoder", encoder, prefix);
  check_table_positions(encoder, prefix);
  if (options.conformer())
    return check_layers<ConformerEncoderLayerImpl>("ConformerEncoder", encoder, prefix);
  check_layers<TransformerEncoderLayerImpl>("TransformerEncoder", encoder, prefix);
  check_grid_bias(prefix + "grid_position_bias", encoder.grid_position_bias, options.num_heads());
  if (options.disentangled()) check_beside_layers(encoder, prefix);
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
  if (embedding.norm) check_norm(name + ".norm", embedding.norm, d_model);
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
  check_bias(name + ".bias", bias, vocab);
}

}  // namespace posenc::inference
