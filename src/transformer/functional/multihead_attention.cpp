#include "posenc/transformer/functional/multihead_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tanh.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <limits>
#include <optional>

#include "core/check.h"
#include "core/low_rank.h"
#include "positions/relative/weights.h"
#include "transformer/functional/attention_mask_internals.h"
#include "transformer/functional/attention_weights.h"

namespace posenc::functional {
namespace {

bool packed(const MultiheadAttentionWeights& weights) { return weights.in_proj_weight.defined(); }

int64_t width_of(const MultiheadAttentionWeights& weights) {
  return (packed(weights) ? weights.in_proj_weight : weights.q_proj_weight).size(-1);
}

// The width of all heads of queries: E unless the width of a head is not E / num_heads.
int64_t query_width_of(const MultiheadAttentionWeights& weights) {
  const at::Tensor& out = weights.out_proj_weight;
  return out.defined() && out.dim() == 2 ? out.size(1) : width_of(weights);
}

// The width of keys and values: that of queries, or less with grouped-query attention.
int64_t kv_width_of(const MultiheadAttentionWeights& weights) {
  return packed(weights) ? (weights.in_proj_weight.size(0) - query_width_of(weights)) / 2
                         : weights.k_proj_weight.size(0);
}

// Projects with the rows of parts part .. part + count - 1: 0 is query, 1 key, 2 value.
at::Tensor project(const at::Tensor& x, const MultiheadAttentionWeights& weights, int64_t part,
                   int64_t count = 1) {
  const int64_t width = query_width_of(weights), kv_width = kv_width_of(weights);
  const int64_t first[] = {0, width, width + kv_width, width + 2 * kv_width};
  const int64_t begin = first[part], rows = first[part + count] - begin;
  const at::Tensor own[] = {weights.q_proj_weight, weights.k_proj_weight, weights.v_proj_weight};
  std::optional<at::Tensor> bias;
  if (weights.in_proj_bias.defined()) bias = weights.in_proj_bias;
  if (packed(weights)) return linear_rows(x, weights.in_proj_weight, bias, begin, rows);
  if (bias) bias = bias->narrow(0, begin, rows);
  return linear_rows(x, own[part], bias);
}

// (B, L, count * H * Dh) -> count x (B, H, L, Dh), as views.
at::Tensor heads_of(const at::Tensor& x, int64_t head_dim, int64_t count = 1) {
  return x.unflatten(-1, {count, x.size(-1) / (count * head_dim), head_dim})
      .permute({2, 0, 3, 1, 4});
}

void check_input(const char* name, const at::Tensor& x, int64_t width) {
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == width, "[MultiheadAttention] ", name,
                    " must be (B, L, ", width, "). Got ", x.sizes());
}

void check_inputs(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const MultiheadAttentionWeights& weights, int64_t num_heads) {
  const int64_t width = width_of(weights), query_width = query_width_of(weights);
  check_positive("MultiheadAttention", "num_heads", num_heads);
  TORCH_CHECK_VALUE(query_width % num_heads == 0, "[MultiheadAttention] num_heads must divide ",
                    query_width == width ? "embed_dim " : "the width of the queries ", query_width,
                    ". Got ", num_heads);
  const int64_t head_dim = query_width / num_heads, kv_width = kv_width_of(weights);
  TORCH_CHECK_VALUE(
      kv_width > 0 && kv_width % head_dim == 0 && num_heads % (kv_width / head_dim) == 0,
      "[MultiheadAttention] keys and values must have whole heads of ", head_dim,
      " channels, whose number divides num_heads ", num_heads, ". Got ", kv_width, " channels");
  if (query.defined()) check_input("query", query, width);
  if (!key.defined()) return;
  check_input("key", key, packed(weights) ? width : weights.k_proj_weight.size(1));
  check_input("value", value, packed(weights) ? width : weights.v_proj_weight.size(1));
  TORCH_CHECK_VALUE(key.size(0) == value.size(0) && key.size(1) == value.size(1),
                    "[MultiheadAttention] key and value must have one batch and one length. Got ",
                    key.sizes(), " and ", value.sizes());
  TORCH_CHECK_VALUE(!query.defined() || query.size(0) == key.size(0),
                    "[MultiheadAttention] query and key must have one batch. Got ", query.sizes(),
                    " and ", key.sizes());
}

AttentionShape shape_of(const Heads& heads) {
  const at::Tensor& query = heads.query;
  return {query.size(0), query.size(1), query.size(2), heads.key.size(2)};
}

// Checks the heads; returns the mask of their scores.
ScoreMask score_mask(const Heads& heads, const AttentionMask& mask,
                     const MultiheadAttentionFuncOptions& options) {
  check_dropout("MultiheadAttention", options.dropout());
  const at::Tensor& query = heads.query;
  for (const at::Tensor* one : {&heads.key, &heads.value}) {  // size 1 would silently broadcast
    TORCH_CHECK_VALUE(query.dim() == 4 && one->dim() == 4 && one->size(0) == query.size(0) &&
                          one->size(1) == heads.key.size(1) && one->size(1) > 0 &&
                          query.size(1) % one->size(1) == 0 && one->size(2) == heads.key.size(2),
                      "[MultiheadAttention] query, keys and values must be (B, H, L, Dh), "
                      "(B, Hkv, S, Dh) and (B, Hkv, S, Dv) of one batch, where Hkv divides H. Got ",
                      query.sizes(), ", ", heads.key.sizes(), " and ", heads.value.sizes());
  }
  return AttentionMaskAccess::resolve(mask, shape_of(heads), query);
}

// The same, with slopes by distance where the CPU computes in float32. What is not finite stays in
// the bias, in which a mask hides it.
ScoreMask score_mask_by_distance(const Heads& heads, const MultiheadAttentionFuncOptions& options) {
  const AttentionMask& mask = options.mask();
  const at::Tensor& query = heads.query;
  if (query.scalar_type() == at::kFloat && query.is_cpu()) {
    ScoreMask found = score_mask(heads, AttentionMaskAccess::without_slopes(mask), options);
    found.by_distance = AttentionMaskAccess::by_distance(mask, shape_of(heads), query, 0);
    if (!found.by_distance.defined() || found.by_distance.isfinite().all().item<bool>())
      return found;
  }
  return score_mask(heads, mask, options);
}

// The output projection of the heads' results, (B, H, L, Dh) -> (B, L, E).
at::Tensor joined(const at::Tensor& context, const MultiheadAttentionWeights& weights,
                  const MultiheadAttentionFuncOptions& options) {
  std::optional<at::Tensor> out_bias;
  if (weights.out_proj_bias.defined()) out_bias = weights.out_proj_bias;
  const auto join = [&](const at::Tensor& x) {  // (., ., H, Dh) -> (., ., E)
    return linear_rows(x.flatten(2), weights.out_proj_weight, out_bias);
  };
  if (!options.python_dropout_order()) return join(context.transpose(1, 2));
  return join(context.permute({2, 0, 1, 3})).transpose(0, 1);  // (L, B, E) -> (B, L, E)
}

// (B, Hkv, S, Dh) with each head once for every one of the `group` heads of queries that share it.
at::Tensor repeated_heads(const at::Tensor& x, int64_t group) {
  return group == 1 ? x : x.repeat_interleave(group, 1);
}

// The weights of capped scores.
at::Tensor capped_weights(const at::Tensor& query, const at::Tensor& key, const ScoreMask& mask,
                          double scale, double softcap) {
  const int64_t queries = query.size(2), keys = key.size(2);
  at::Tensor scores = at::matmul(query * scale, key.transpose(2, 3));
  scores = at::tanh(scores / softcap) * softcap;
  if (mask.by_distance.defined())
    scores = scores + relative::pairs_of(mask.distances(queries, keys), queries, keys);
  if (mask.bias.defined()) scores = scores + mask.bias;
  if (mask.is_causal) {
    const at::Tensor later = at::ones({queries, keys}, query.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  return at::_safe_softmax(scores, -1).to(query.scalar_type());
}

}  // namespace

at::Tensor attention_weights(const at::Tensor& query, const at::Tensor& key, const ScoreMask& mask,
                             std::optional<double> given_scale, std::optional<double> softcap) {
  const double scale = given_scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(3))));
  if (softcap) {
    const at::Tensor keys = repeated_heads(key, query.size(1) / key.size(1));
    return capped_weights(query, keys, mask, scale, *softcap);
  }
  relative::Rules rules = {};
  rules.mask = mask.bias;
  if (mask.by_distance.defined()) rules.term = mask.distances(query.size(2), key.size(2));
  rules.scoring.scale_of = relative::ScaleOf::Query;
  rules.scale = scale;
  rules.masked_row = relative::MaskedRow::Zeros;
  rules.is_causal = mask.is_causal;
  return relative::weights(query, repeated_heads(key, query.size(1) / key.size(1)), rules);
}

Heads split_heads(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const MultiheadAttentionWeights& weights, int64_t num_heads) {
  check_inputs(query, key, value, weights, num_heads);
  const int64_t width = query_width_of(weights), kv_width = kv_width_of(weights);
  const int64_t head_dim = width / num_heads;
  if (packed(weights) && query.is_same(key) && key.is_same(value)) {
    const at::Tensor whole = project(query, weights, 0, 3);
    if (kv_width == width) {
      const at::Tensor all = heads_of(whole, head_dim, 3);
      return {all[0], all[1], all[2]};
    }
    const at::Tensor both = heads_of(whole.narrow(-1, width, 2 * kv_width), head_dim, 2);
    return {heads_of(whole.narrow(-1, 0, width), head_dim)[0], both[0], both[1]};
  }
  Heads heads;
  if (query.defined()) heads.query = heads_of(project(query, weights, 0), head_dim)[0];
  if (!key.defined()) return heads;
  if (packed(weights) && key.is_same(value)) {
    const at::Tensor both = heads_of(project(key, weights, 1, 2), head_dim, 2);
    heads.key = both[0], heads.value = both[1];
  } else {
    heads.key = heads_of(project(key, weights, 1), head_dim)[0];
    heads.value = heads_of(project(value, weights, 2), head_dim)[0];
  }
  return heads;
}

at::Tensor attend_heads(const Heads& heads, const MultiheadAttentionWeights& weights,
                        const MultiheadAttentionFuncOptions& options) {
  if (options.softcap())  // which LibTorch's attention has not
    return std::get<0>(attend_heads_with_weights(heads, weights, options, false));
  ScoreMask mask = score_mask(heads, options.mask(), options);
  // LibTorch hides later keys before it scales: a scale of 0 makes NaN of them, a negative one inf.
  if (mask.is_causal && options.scale().value_or(1.0) <= 0.0) {
    const auto bias = heads.query.options().requires_grad(false);
    mask = {at::full({heads.query.size(2), heads.key.size(2)},
                     -std::numeric_limits<double>::infinity(), bias)
                .triu(1)};
  }
  std::optional<at::Tensor> score_bias;
  if (mask.bias.defined()) score_bias = mask.bias;
  const at::Tensor context = at::scaled_dot_product_attention(
      heads.query, heads.key, heads.value, score_bias, options.training() ? options.dropout() : 0.0,
      mask.is_causal, options.scale(),
      /*enable_gqa=*/heads.key.size(1) != heads.query.size(1));  // (B, H, L, Dh)
  return joined(context, weights, options);
}

std::tuple<at::Tensor, at::Tensor> attend_heads_with_weights(
    const Heads& heads, const MultiheadAttentionWeights& weights,
    const MultiheadAttentionFuncOptions& options, bool average_attn_weights) {
  const ScoreMask mask = score_mask_by_distance(heads, options);
  const int64_t group = heads.query.size(1) / heads.key.size(1);  // heads that share keys
  at::Tensor shares =
      attention_weights(heads.query, heads.key, mask, options.scale(), options.softcap());
  if (options.training() && options.dropout() > 0.0)
    shares = at::dropout(shares, options.dropout(), /*train=*/true);
  const at::Tensor out =
      joined(at::matmul(shares, repeated_heads(heads.value, group)), weights, options);
  return {out, average_attn_weights ? shares.mean(1) : shares};
}

at::Tensor multihead_attention(const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const MultiheadAttentionWeights& weights,
                               const MultiheadAttentionFuncOptions& options) {
  return attend_heads(split_heads(query, key, value, weights, options.num_heads()), weights,
                      options);
}

std::tuple<at::Tensor, at::Tensor> multihead_attention_with_weights(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const MultiheadAttentionWeights& weights, const MultiheadAttentionFuncOptions& options,
    bool average_attn_weights) {
  return attend_heads_with_weights(split_heads(query, key, value, weights, options.num_heads()),
                                   weights, options, average_attn_weights);
}

}  // namespace posenc::functional
