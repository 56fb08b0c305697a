#include "transformer/layers/layer_parts.h"

#include <ATen/ops/eye.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "positions/nn/weights.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

// Which norms there are, and what needs them.
void check_norms(const char* module, const TransformerLayerOptions& options) {
  const bool is_parallel = options.parallel() != Parallel::None;
  const std::pair<bool, const char*> of_pre_norms[] = {
      {!options.first_norm(), "first_norm(false)"},
      {!options.second_norm(), "second_norm(false)"},
      {options.residual_of_norm(), "residual_of_norm(true)"},
      {is_parallel, "parallel"},
      {options.post_norms(), "post_norms(true)"},
      {options.output_factor(), "output_factor(true)"},
      {options.per_layer_input().has_value(), "per_layer_input"}};
  for (const auto& [is_set, name] : of_pre_norms) {
    TORCH_CHECK_VALUE(options.norm_first() || !is_set, "[", module, "] ", name,
                      " must be with norm_first(true). Got norm_first(false)");
    TORCH_CHECK_VALUE(!is_parallel || !is_set || name == std::string_view("parallel"), "[", module,
                      "] parallel must be without ", name, ". Got both");
  }
  TORCH_CHECK_VALUE(!is_parallel || !options.adapter(), "[", module,
                    "] parallel must be without adapter. Got both");
  TORCH_CHECK_VALUE(!options.qk_norm() || options.norm_kind() != NormKind::Affine, "[", module,
                    "] qk_norm(true) must be with a norm_kind that normalises. Got "
                    "NormKind::Affine");
  TORCH_CHECK_VALUE(options.qk_norm() || !(options.qk_norm_bias() || options.qk_norm_per_head() ||
                                           options.qk_norm_after_rotary()),
                    "[", module,
                    "] qk_norm_bias, qk_norm_per_head and qk_norm_after_rotary must be "
                    "with qk_norm(true). Got qk_norm(false)");
}

}  // namespace

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
  check_norms(module, options);
  TORCH_CHECK_VALUE(std::isfinite(options.residual_scale()), "[", module,
                    "] residual_scale must be finite. Got ", options.residual_scale());
  if (options.per_layer_input())
    check_positive(module, "per_layer_input", *options.per_layer_input());
  if (options.adapter()) check_positive(module, "adapter.width", options.adapter()->width());
  TORCH_CHECK_VALUE(!options.adapter() || options.feed_forward() == FeedForward::Plain, "[", module,
                    "] adapter must be with FeedForward::Plain. Got FeedForward::Gated");
  TORCH_CHECK_VALUE(options.window().value_or(0) >= 0, "[", module,
                    "] window must not be negative. Got ", *options.window());
}

std::string unread_option(const TransformerLayerOptions& options,
                          const std::vector<std::string_view>& own) {
  static constexpr std::string_view kOfAll[] = {
      "d_model",    "num_heads",      "d_ff",         "conv_kernel_size",
      "activation", "layer_norm_eps", "linear1_bias", "linear2_bias",
      "norm_bias",  "dropout",        "dropouts"};
  TransformerLayerOptions given = options;
  if (given.qkv_bias() == true) given.qkv_bias(std::nullopt);  // as `bias` says by default
  if (given.out_bias() == true) given.out_bias(std::nullopt);
  const TransformerLayerOptions defaults(options.d_model(), options.num_heads());
  std::string unread;
  fields::any_of_pairs(
      given, defaults, fields::Which::All,
      [&](const char* names, std::size_t index, const auto& value, const auto& other) {
        if (!fields::differ(value, other, fields::Which::All)) return false;
        const std::string name = fields::field_name(names, index);
        const auto is_name = [&](std::string_view one) { return one == name; };
        const bool is_read = std::any_of(std::begin(kOfAll), std::end(kOfAll), is_name) ||
                             std::any_of(own.begin(), own.end(), is_name);
        if (!is_read) unread = name;
        return !is_read;
      });
  return unread;
}

void check_unread(const char* module, const TransformerLayerOptions& options,
                  const std::vector<std::string_view>& own, const std::string& with) {
  const std::string unread = unread_option(options, own);
  TORCH_CHECK_VALUE(unread.empty(), "[", module, "] ", unread, " must be its default", with,
                    ". Got another");
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

LayerDropouts dropouts_of(const TransformerLayerOptions& options) {
  const double p = options.dropout();
  return options.dropouts().value_or(LayerDropouts{p, p, p, p, 0.0});
}

namespace {

MultiheadAttentionOptions attention_options(const TransformerLayerOptions& options) {
  MultiheadAttentionOptions own(options.d_model(), options.num_heads());
  if (options.qk_norm()) own.qk_norm(options.norm_kind());
  if (options.qk_norm() || options.value_norm()) own.qk_norm_eps(options.layer_norm_eps());
  own.qk_norm_whole(options.qk_norm_whole())
      .qk_norm_bias(options.qk_norm_bias())
      .qk_norm_per_head(options.qk_norm_per_head())
      .qk_norm_after_rotary(options.qk_norm_after_rotary())
      .value_norm(options.value_norm())
      .qkv_clip(options.qkv_clip())
      .softcap(options.attention_softcap())
      .query_growth(options.query_growth());
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

DisentangledAttention make_disentangled_attention(const TransformerLayerOptions& options) {
  const LayerDropouts drops = dropouts_of(options);
  return DisentangledAttention(
      DisentangledAttentionOptions(options.d_model(), options.num_heads(), *options.disentangled())
          .scale(options.attention_scale())
          .key_bias(options.key_bias())
          .dropout(drops.attention)
          .position_dropout(drops.attention_output));
}

ConvolutionalAttention make_convolutional_attention(const TransformerLayerOptions& options) {
  return ConvolutionalAttention(
      ConvolutionalAttentionOptions(options.d_model(), options.num_heads())
          .conv_kernel_size(options.conv_kernel_size())
          .dropout(dropouts_of(options).attention));
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
                             .bias(options.norm_bias().value_or(options.bias()))
                             .elementwise_affine(options.norm_affine()));
}

TransformerNorm make_final_norm(TransformerLayerOptions layer, std::optional<double> eps,
                                std::optional<bool> bias) {
  if (bias) layer.norm_bias(bias);
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

torch::Tensor attend_heads(MultiheadAttentionImpl& attention, torch::Tensor* weights,
                           const torch::Tensor& query, const torch::Tensor& key,
                           const torch::Tensor& value, const AttentionMask& mask,
                           const torch::Tensor& position_ids) {
  if (weights == nullptr) return attention.forward(query, key, value, mask, position_ids);
  torch::Tensor out;
  std::tie(out, *weights) = attention.forward_with_weights(
      query, key, value, mask, /*average_attn_weights=*/false, position_ids);
  return out;
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

}  // namespace posenc
