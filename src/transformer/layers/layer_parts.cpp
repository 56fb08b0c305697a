#include "transformer/layers/layer_parts.h"

#include <ATen/ops/eye.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "positions/nn/weights.h"
#include "transformer/functional/attention_mask_internals.h"
#include "transformer/functional/drop.h"

namespace posenc {

void check_layer(const char* module, const TransformerLayerOptions& options) {
  check_positive(module, "d_model", options.d_model());
  check_positive(module, "num_heads", options.num_heads());
  check_positive(module, "d_ff", options.d_ff());
  check_dropout(module, options.dropout());
  const LayerDropouts drops = dropouts_of(options);
  for (const double p :
       {drops.attention, drops.attention_output, drops.activation, drops.output, drops.path}) {
    check_dropout(module, p);
  }
  TORCH_CHECK_VALUE(options.head_dim() || options.d_model() % options.num_heads() == 0, "[", module,
                    "] num_heads must divide d_model ", options.d_model(), ". Got ",
                    options.num_heads());
  const double scale = options.layer_scale().value_or(1.0);
  TORCH_CHECK_VALUE(std::isfinite(scale), "[", module, "] layer_scale must be finite. Got ", scale);
  TORCH_CHECK_VALUE(options.norm_first() || (options.first_norm() && !options.post_norms()), "[",
                    module, "] ", options.first_norm() ? "post_norms(true)" : "first_norm(false)",
                    " must be with norm_first(true). Got norm_first(false)");
  const bool is_rms =
      options.norm_kind() == NormKind::RMS || options.norm_kind() == NormKind::RMSPlusOne;
  TORCH_CHECK_VALUE(!options.qk_norm() || is_rms, "[", module,
                    "] qk_norm(true) must be with an RMS norm_kind. Got NormKind::",
                    options.norm_kind() == NormKind::Layer ? "Layer" : "Affine");
  TORCH_CHECK_VALUE(options.window().value_or(0) >= 0, "[", module,
                    "] window must not be negative. Got ", *options.window());
}

void check_defaults(const char* module, const TransformerLayerOptions& options,
                    std::initializer_list<const char*> own) {
  const std::pair<const char*, bool> all[] = {
      {"norm_first", options.norm_first()},
      {"first_norm", !options.first_norm()},
      {"post_norms", options.post_norms()},
      {"bottleneck", options.bottleneck().has_value()},
      {"disentangled", options.disentangled().has_value()},
      {"transformer_xl", options.transformer_xl().has_value()},
      {"conformer", options.conformer().has_value()},
      {"layer_scale", options.layer_scale().has_value()},
      {"window", options.window().has_value()},
      {"mixing", options.mixing() != Mixing::Attention},
      {"feed_forward", options.feed_forward() != FeedForward::Plain},
      {"norm_kind", options.norm_kind() != NormKind::Layer},
      {"head_dim", options.head_dim().has_value()},
      {"num_kv_heads", options.num_kv_heads().has_value()},
      {"qk_norm", options.qk_norm()},
      {"relative", options.relative().has_value()},
      {"grid_bias", options.grid_bias().has_value()},
      {"rotary", options.rotary().has_value()},
      {"bias",
       !options.bias() || !options.qkv_bias().value_or(true) || !options.out_bias().value_or(true)},
      {"query_bias", !options.query_bias()},
      {"value_bias", !options.value_bias()},
      {"batch_first", !options.batch_first()},
      {"python_dropout_order", options.python_dropout_order()}};
  for (const auto& [name, is_set] : all) {
    const bool is_own = std::any_of(own.begin(), own.end(),
                                    [name = name](std::string_view one) { return one == name; });
    TORCH_CHECK_VALUE(is_own || !is_set, "[", module, "] ", name,
                      " must be its default. Got another");
  }
  TORCH_CHECK_VALUE(dropouts_of(options).path == 0.0, "[", module,
                    "] the dropout of a path must be 0. Got ", dropouts_of(options).path);
}

AttentionMask mask_of_stack(const AttentionMask& mask, const TransformerLayerOptions& options) {
  const torch::Tensor keys = mask.padding_keys();
  if (!keys.defined()) return mask;
  if (options.disentangled()) return mask & AttentionMask::allowed(keys.unsqueeze(2));
  if (!options.transformer_xl() || options.conformer()) return mask;
  const torch::Tensor itself = at::eye(keys.size(1), keys.options());
  return AttentionMaskAccess::with_padding(mask, keys) &
         AttentionMask::allowed(keys.unsqueeze(1).logical_or(itself));
}

const char* encoder_option(const TransformerLayerOptions& options) {
  if (options.mixing() != Mixing::Attention) return "mixing";
  if (options.bottleneck()) return "bottleneck";
  if (options.disentangled()) return "disentangled";
  if (options.transformer_xl()) return "transformer_xl";
  if (options.conformer()) return "conformer";
  if (!options.first_norm()) return "first_norm";
  if (options.post_norms()) return "post_norms";
  if (options.grid_bias()) return "grid_bias";
  if (options.rotary()) return "rotary";
  if (options.qk_norm()) return "qk_norm";
  if (options.window()) return "window";
  return nullptr;
}

LayerDropouts dropouts_of(const TransformerLayerOptions& options) {
  const double p = options.dropout();
  return options.dropouts().value_or(LayerDropouts{p, p, p, p, 0.0});
}

namespace {

MultiheadAttentionOptions attention_options(const TransformerLayerOptions& options) {
  MultiheadAttentionOptions own(options.d_model(), options.num_heads());
  if (options.qk_norm()) own.qk_norm(options.norm_kind()).qk_norm_eps(options.layer_norm_eps());
  return own.num_kv_heads(options.num_kv_heads())
      .head_dim(options.head_dim())
      .scale(options.attention_scale())
      .rotary(options.rotary())
      .dropout(dropouts_of(options).attention)
      .bias(options.qkv_bias().value_or(options.bias()))
      .query_bias(options.query_bias())
      .key_bias(options.key_bias())
      .value_bias(options.value_bias())
      .out_bias(options.out_bias().value_or(options.bias()))
      .batch_first(options.batch_first())
      .python_dropout_order(options.python_dropout_order());
}

}  // namespace

MultiheadAttention make_self_attention(const TransformerLayerOptions& options) {
  return MultiheadAttention(attention_options(options).relative(options.relative()));
}

TransformerXLAttention make_transformer_xl_attention(const TransformerLayerOptions& options) {
  return TransformerXLAttention(TransformerXLAttentionOptions(options.d_model(),
                                                              options.num_heads(),
                                                              *options.transformer_xl())
                                    .scale(options.attention_scale())
                                    .dropout(dropouts_of(options).attention)
                                    .bias(options.qkv_bias().value_or(options.bias()))
                                    .out_bias(options.out_bias().value_or(options.bias())));
}

MultiheadAttention make_cross_attention(const TransformerLayerOptions& options) {
  return MultiheadAttention(attention_options(options));
}

torch::nn::Linear make_linear1(const TransformerLayerOptions& options) {
  const int64_t parts = options.feed_forward() == FeedForward::Gated ? 2 : 1;
  return make_linear(torch::nn::LinearOptions(options.d_model(), parts * options.d_ff())
                         .bias(options.linear1_bias().value_or(options.bias())));
}

torch::nn::Linear make_linear2(const TransformerLayerOptions& options) {
  return make_linear(torch::nn::LinearOptions(options.d_ff(), options.d_model())
                         .bias(options.linear2_bias().value_or(options.bias())));
}

TransformerNorm make_norm(const TransformerLayerOptions& options) {
  return TransformerNorm(TransformerNormOptions(options.d_model())
                             .kind(options.norm_kind())
                             .eps(options.layer_norm_eps())
                             .bias(options.norm_bias().value_or(options.bias())));
}

TransformerNorm make_final_norm(TransformerLayerOptions layer, std::optional<double> eps) {
  return make_norm(layer.layer_norm_eps(eps.value_or(layer.layer_norm_eps())));
}

LayerScale make_scale(const TransformerLayerOptions& options) {
  return LayerScale(LayerScaleOptions(options.d_model()).init(*options.layer_scale()));
}

std::vector<size_t> layers_in_order(const std::vector<int64_t>& order, size_t count) {
  std::vector<size_t> indices(order.begin(), order.end());
  if (order.empty()) {
    indices.resize(count);
    std::iota(indices.begin(), indices.end(), size_t{0});
  }
  return indices;
}

// The operations of transformers' DropPath, for the same masks.
torch::Tensor drop_path(const torch::Tensor& x, double p, bool training, bool batch_first) {
  if (p == 0.0 || !training) return x;
  const int64_t batch = x.size(batch_first ? 0 : 1);
  const std::vector<int64_t> sizes =
      batch_first ? std::vector<int64_t>{batch, 1, 1} : std::vector<int64_t>{1, batch, 1};
  const torch::Tensor kept = (torch::rand(sizes, x.options()) + (1.0 - p)).floor_();
  return x / (1.0 - p) * kept;
}

torch::Tensor branch(const torch::nn::DropoutImpl& dropout, const LayerScale& scale,
                     const torch::Tensor& x) {
  const torch::Tensor dropped = drop(dropout, x);
  return scale.is_empty() ? dropped : scale.ptr()->forward(dropped);
}

torch::Tensor feed_forward(const torch::Tensor& x, torch::nn::LinearImpl& linear1,
                           torch::nn::DropoutImpl& dropout, torch::nn::LinearImpl& linear2,
                           const TransformerLayerOptions& options) {
  torch::Tensor hidden = linear1.forward(x);  // (B, L, d_ff), with gates (B, L, 2 d_ff)
  if (options.feed_forward() == FeedForward::Gated) {
    const auto parts = hidden.chunk(2, -1);
    hidden = functional::activate(parts[0], options.activation()) * parts[1];
  } else if (options.activation() == Activation::ReLU) {
    hidden.relu_();  // in place: a layer's largest tensor
  } else {
    hidden = functional::activate(hidden, options.activation());
  }
  return linear2.forward(drop(dropout, hidden));
}

AttentionShape attention_shape(const char* module, const torch::Tensor& x,
                               const torch::Tensor& keys, const TransformerLayerOptions& options) {
  const char* layout = options.batch_first() ? "(B, L, " : "(L, B, ";
  for (const auto* one : {&x, &keys}) {
    TORCH_CHECK_VALUE(one->dim() == 3 && one->size(2) == options.d_model(), "[", module,
                      "] a sequence must be ", layout, options.d_model(), "). Got ", one->sizes());
  }
  const int64_t batch = options.batch_first() ? 0 : 1;
  return {x.size(batch), options.num_heads(), x.size(1 - batch), keys.size(1 - batch)};
}

void print(std::ostream& stream, const TransformerLayerOptions& options) {
  stream << "d_model=" << options.d_model() << ", num_heads=" << options.num_heads()
         << ", d_ff=" << options.d_ff() << ", dropout=" << options.dropout();
  if (const auto& drops = options.dropouts()) {
    stream << ", dropouts=(" << drops->attention << ", " << drops->attention_output << ", "
           << drops->activation << ", " << drops->output << ", " << drops->path << ")";
  }
  if (options.activation() != Activation::ReLU)
    stream << ", activation=" << to_string(options.activation());
  if (options.norm_first()) stream << ", norm_first=true";
  if (options.layer_norm_eps() != 1e-5) stream << ", layer_norm_eps=" << options.layer_norm_eps();
  if (!options.bias()) stream << ", bias=false";
  const std::pair<const char*, std::optional<bool>> biases[] = {
      {"qkv_bias", options.qkv_bias()},
      {"out_bias", options.out_bias()},
      {"linear1_bias", options.linear1_bias()},
      {"linear2_bias", options.linear2_bias()},
      {"norm_bias", options.norm_bias()}};
  for (const auto& [name, bias] : biases) {
    if (bias) stream << ", " << name << "=" << (*bias ? "true" : "false");
  }
  if (options.mixing() == Mixing::Fourier) stream << ", mixing=fourier";
  if (options.mixing() == Mixing::Convolution) {
    stream << ", mixing=convolution, conv_kernel_size=" << options.conv_kernel_size();
  }
  if (const auto& bottleneck = options.bottleneck()) {
    stream << ", bottleneck=" << bottleneck->intra_bottleneck_size()
           << ", num_feedforward_networks=" << bottleneck->num_feedforward_networks();
  }
  if (const auto& own = options.disentangled()) {
    stream << ", disentangled=" << own->max_relative_positions();
    if (own->position_buckets() > 0) stream << ", position_buckets=" << own->position_buckets();
    if (own->conv_kernel_size() > 0) stream << ", conv_kernel_size=" << own->conv_kernel_size();
  }
  if (const auto& own = options.conformer()) stream << ", conformer=" << own->conv_kernel_size();
  if (const auto& own = options.transformer_xl()) {
    stream << ", transformer_xl=true";
    if (own->clamp_len() > 0) stream << ", clamp_len=" << own->clamp_len();
    if (own->bi_data()) stream << ", bi_data=true";
  }
  if (options.feed_forward() == FeedForward::Gated) stream << ", feed_forward=gated";
  if (!options.first_norm()) stream << ", first_norm=false";
  if (options.post_norms()) stream << ", post_norms=true";
  if (options.norm_kind() != NormKind::Layer)
    stream << ", norm_kind=" << to_string(options.norm_kind());
  if (options.num_kv_heads()) stream << ", num_kv_heads=" << *options.num_kv_heads();
  if (options.head_dim()) stream << ", head_dim=" << *options.head_dim();
  if (options.relative()) stream << ", relative=true";
  if (options.rotary()) stream << ", rotary=true";
  if (options.qk_norm()) stream << ", qk_norm=true";
  if (options.attention_scale()) stream << ", attention_scale=" << *options.attention_scale();
  if (options.window()) stream << ", window=" << *options.window();
  if (!options.batch_first()) stream << ", batch_first=false";
  if (options.layer_scale()) stream << ", layer_scale=" << *options.layer_scale();
  if (options.python_dropout_order()) stream << ", python_dropout_order=true";
}

}  // namespace posenc
