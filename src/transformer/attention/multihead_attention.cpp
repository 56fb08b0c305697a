// posenc-budget: one module: its parameters, its heads, its steps
#include "posenc/transformer/attention/multihead_attention.h"

#include <ATen/ops/rms_norm.h>
#include <torch/nn/init.h>

#include <cmath>
#include <ostream>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "positions/nn/rotary_embedding_internals.h"
#include "positions/nn/weights.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

// What a layer that rotates the heads of its queries and keys cannot compute.
void check_applied(rotary::AppliedTo applied_to, int64_t heads) {
  TORCH_CHECK_VALUE(applied_to != rotary::AppliedTo::HeadsByHead,
                    "[MultiheadAttention] rotary must rotate by the positions of tokens: use "
                    "functional::rotary() in an attention of your own. Got "
                    "AppliedTo::HeadsByHead, a rotation by the number of the head (xcodec2)");
  TORCH_CHECK_VALUE(applied_to != rotary::AppliedTo::HiddenStates,
                    "[MultiheadAttention] rotary must rotate the heads of q and k: use "
                    "functional::rotary() before the projections of an attention of your own. Got "
                    "AppliedTo::HiddenStates (wav2vec2_conformer, musicflamingo)");
  TORCH_CHECK_VALUE(applied_to != rotary::AppliedTo::AllHeads || heads == 1,
                    "[MultiheadAttention] rotary must rotate each head: use functional::rotary() "
                    "before the heads are split, in an attention of your own. Got "
                    "AppliedTo::AllHeads (efficientloftr, ltx) for ",
                    heads, " heads");
  TORCH_CHECK_VALUE(applied_to != rotary::AppliedTo::HeadsAndOutput,
                    "[MultiheadAttention] rotary must not rotate the result: use "
                    "functional::rotary(), and its inverse, in an attention of your own. Got "
                    "AppliedTo::HeadsAndOutput (deepseek_v4)");
}

void check_head_width(const RotaryOptions& rotary, int64_t width) {
  const bool whole = rotary.part() == rotary::Part::Whole;
  const bool fits = whole ? rotary.rotary_dim() == width : rotary.rotary_dim() <= width;
  TORCH_CHECK_VALUE(fits, "[MultiheadAttention] rotary must rotate ", whole ? "" : "at most ",
                    "the ", width, " channels of a head. Got ", rotary.rotary_dim());
}

// The options of the norms of queries and keys.
void check_qk_norms(const MultiheadAttentionOptions& options) {
  const auto kind = options.qk_norm();
  const char* const own = options.qk_norm_per_head() ? "qk_norm_per_head(true)"
                          : options.qk_norm_bias()   ? "qk_norm_bias(true)"
                                                     : nullptr;
  TORCH_CHECK_VALUE(own == nullptr || kind == NormKind::Layer, "[MultiheadAttention] ", own,
                    " must be with NormKind::Layer. Got ", kind ? to_string(*kind) : "no qk_norm");
  TORCH_CHECK_VALUE(!options.qk_norm_per_head() || !options.qk_norm_whole(),
                    "[MultiheadAttention] qk_norm_per_head(true) must be without qk_norm_whole. "
                    "Got both");
}

// Rows of the bias that are none get no gradient. Each pair: whether there are such rows, and their
// number.
void hold_zeros(const torch::Tensor& bias, const std::vector<std::pair<bool, int64_t>>& parts) {
  std::vector<std::pair<int64_t, int64_t>> held;  // first row and number
  int64_t first = 0;
  for (const auto& [is_there, rows] : parts) {
    if (!is_there) held.emplace_back(first, rows);
    first += rows;
  }
  if (held.empty()) return;
  bias.register_hook([held](const torch::Tensor& grad) {
    torch::Tensor own = grad.clone();
    for (const auto& [begin, rows] : held) own.narrow(0, begin, rows).zero_();
    return own;
  });
}

void check_scores(const MultiheadAttentionOptions& options) {
  const auto& softcap = options.softcap();
  TORCH_CHECK_VALUE(!softcap || (std::isfinite(*softcap) && *softcap > 0.0),
                    "[MultiheadAttention] softcap must be positive and finite. Got ", *softcap);
  const auto& growth = options.query_growth();
  if (!growth) return;
  TORCH_CHECK_VALUE(std::isfinite(growth->beta) && growth->length >= 1,
                    "[MultiheadAttention] query_growth must have a finite beta and a length of at "
                    "least 1. Got ",
                    growth->beta, " and ", growth->length);
  TORCH_CHECK_VALUE(options.rotary() && !options.rotary()->rotary().axial(),
                    "[MultiheadAttention] query_growth needs a rotary embedding that rotates by "
                    "one position of a token, by which queries grow. Got ",
                    options.rotary() ? "one of several axes" : "no rotary");
}

// Keys are cached as they were scaled.
void check_steps(const RotaryEmbedding& rotary) {
  TORCH_CHECK_VALUE(!rotary || rotary->options.rotary().xpos_scale_base() == 0.0 ||
                        rotary->options.rotary().xpos_middle(),
                    "[MultiheadAttention] step() with xPos needs RotaryOptions::xpos_middle, the "
                    "same for all keys of a cache. Got no xpos_middle");
}

}  // namespace

float QueryGrowth::factor(int64_t position) const {
  const auto past = static_cast<float>(position / length);
  return 1.0F + static_cast<float>(beta) * std::log(1.0F + past);
}

MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions options_)
    : options(options_) {
  MultiheadAttentionImpl::reset();
}

int64_t MultiheadAttentionImpl::head_dim() const {
  return options.head_dim().value_or(options.embed_dim() / options.num_heads());
}

void MultiheadAttentionImpl::reset() {
  const int64_t width = options.embed_dim();
  check_positive("MultiheadAttention", "embed_dim", width);
  check_positive("MultiheadAttention", "num_heads", options.num_heads());
  check_dropout("MultiheadAttention", options.dropout());
  TORCH_CHECK_VALUE(options.head_dim() || width % options.num_heads() == 0,
                    "[MultiheadAttention] num_heads must divide embed_dim ", width, ". Got ",
                    options.num_heads());
  check_positive("MultiheadAttention", "head_dim", head_dim());
  TORCH_CHECK_VALUE(!options.scale() || std::isfinite(*options.scale()),
                    "[MultiheadAttention] scale must be finite. Got ", *options.scale());
  const int64_t kdim = options.kdim().value_or(width), vdim = options.vdim().value_or(width);
  check_positive("MultiheadAttention", "kdim", kdim);
  check_positive("MultiheadAttention", "vdim", vdim);
  const int64_t kv_heads = options.num_kv_heads().value_or(options.num_heads());
  check_positive("MultiheadAttention", "num_kv_heads", kv_heads);
  TORCH_CHECK_VALUE(options.num_heads() % kv_heads == 0,
                    "[MultiheadAttention] num_kv_heads must divide num_heads ", options.num_heads(),
                    ". Got ", kv_heads);
  check_qk_norms(options);
  TORCH_CHECK_VALUE(options.qkv_clip().value_or(0.0) >= 0.0,
                    "[MultiheadAttention] qkv_clip must not be negative. Got ",
                    *options.qkv_clip());
  const int64_t query_width = head_dim() * options.num_heads(), kv_width = head_dim() * kv_heads;
  if (kdim == width && vdim == width) {
    in_proj_weight =
        register_parameter("in_proj_weight", new_weight({query_width + 2 * kv_width, width}));
  } else {
    q_proj_weight = register_parameter("q_proj_weight", torch::empty({query_width, width}));
    k_proj_weight = register_parameter("k_proj_weight", torch::empty({kv_width, kdim}));
    v_proj_weight = register_parameter("v_proj_weight", torch::empty({kv_width, vdim}));
  }
  if (options.bias()) {
    in_proj_bias = register_parameter("in_proj_bias", torch::empty({query_width + 2 * kv_width}));
    hold_zeros(in_proj_bias, {{options.query_bias(), query_width},
                              {options.key_bias(), kv_width},
                              {options.value_bias(), kv_width}});
  }
  const bool out_bias = options.out_bias().value_or(options.bias());
  out_proj = register_module(
      "out_proj", make_linear(torch::nn::LinearOptions(query_width, width).bias(out_bias)));
  if (options.qk_norm()) {
    const auto norm_of = [&](int64_t heads) {
      TransformerNormOptions own(head_dim() * (options.qk_norm_whole() ? heads : 1));
      if (options.qk_norm_per_head()) own.num_heads(heads);
      return TransformerNorm(
          own.kind(*options.qk_norm()).eps(options.qk_norm_eps()).bias(options.qk_norm_bias()));
    };
    q_norm = register_module("q_norm", norm_of(options.num_heads()));
    k_norm = register_module("k_norm", norm_of(kv_heads));
  }
  if (options.rotary()) {
    // Heads are split before they are rotated: (B, H, L, Dh), whatever the system's order.
    auto own = *options.rotary();
    own.head_axis(rotary::HeadAxis::BeforeLength);
    check_applied(own.rotary().applied_to(), options.num_heads());
    check_head_width(own.rotary(), head_dim());
    rotary = register_module("rotary", RotaryEmbedding(std::move(own)));
  }
  if (!SkipInit::is_active()) reset_in_projection();
  check_scores(options);
  if (options.relative()) {
    relative_attention_bias = register_module(
        "relative_attention_bias", RelativePositionBias(*options.relative(), options.num_heads()));
  }
}

void MultiheadAttentionImpl::reset_parameters() {
  out_proj->reset_parameters();  // drawn first, as by PyTorch's constructor
  for (auto* norm : {&q_norm, &k_norm}) {
    if (*norm) (*norm)->reset_parameters();
  }
  reset_in_projection();
  if (relative_attention_bias) relative_attention_bias->reset_parameters();
}

void MultiheadAttentionImpl::reset_in_projection() {
  for (auto* weight : {&in_proj_weight, &q_proj_weight, &k_proj_weight, &v_proj_weight}) {
    if (weight->defined()) torch::nn::init::xavier_uniform_(*weight);
  }
  if (in_proj_bias.defined()) torch::nn::init::zeros_(in_proj_bias);
  if (out_proj->bias.defined()) torch::nn::init::zeros_(out_proj->bias);
}

void MultiheadAttentionImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "MultiheadAttention", options, MultiheadAttentionOptions(-1, -1));
}

torch::Tensor MultiheadAttentionImpl::forward(const torch::Tensor& query, const torch::Tensor& key,
                                              const torch::Tensor& value, const AttentionMask& mask,
                                              const torch::Tensor& position_ids,
                                              const torch::Tensor& key_position_ids) {
  const functional::Heads heads = heads_of(query, key, value, position_ids, key_position_ids);
  const torch::Tensor out = attend_heads(heads, mask);
  return options.batch_first() ? out : out.transpose(0, 1);
}

std::tuple<torch::Tensor, torch::Tensor> MultiheadAttentionImpl::forward_with_weights(
    const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
    const AttentionMask& mask, bool average_attn_weights, const torch::Tensor& position_ids,
    const torch::Tensor& key_position_ids) {
  const functional::Heads heads = heads_of(query, key, value, position_ids, key_position_ids);
  auto [out, shares] = functional::attend_heads_with_weights(
      heads, weights(), func_options(with_bias(heads, mask, 0)), average_attn_weights);
  return {options.batch_first() ? out : out.transpose(0, 1), shares};
}

// The rotated heads of inputs in the layout of the options.
functional::Heads MultiheadAttentionImpl::heads_of(const torch::Tensor& query,
                                                   const torch::Tensor& key,
                                                   const torch::Tensor& value,
                                                   const torch::Tensor& position_ids,
                                                   const torch::Tensor& key_position_ids) {
  const auto rotated = [&](const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
    functional::Heads heads = split_heads(q, k, v);
    apply_positions(heads, 0, position_ids, key_position_ids);
    return heads;
  };
  if (options.batch_first()) return rotated(query, key, value);
  TORCH_CHECK_VALUE(query.dim() == 3 && key.dim() == 3 && value.dim() == 3,
                    "[MultiheadAttention] query, key and value must be (L, B, E). Got ",
                    query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  // If all three are the same tensor, keep them so: they are then projected in one multiplication.
  const auto q = query.transpose(0, 1);
  const auto k = key.is_same(query) ? q : key.transpose(0, 1);
  const auto v = value.is_same(key) ? k : value.transpose(0, 1);
  return rotated(q, k, v);
}

void MultiheadAttentionImpl::apply_positions(functional::Heads& heads, int64_t offset,
                                             const torch::Tensor& position_ids,
                                             const torch::Tensor& key_position_ids) {
  rotate(heads, offset, position_ids, key_position_ids);
  if (options.qk_norm_after_rotary()) normalise(heads);
  if (!options.query_growth()) return;
  const torch::Tensor& query = heads.query;  // (B, H, L, Dh)
  const torch::Tensor positions =
      position_ids.defined()
          ? position_ids
          : torch::arange(offset, offset + query.size(2),
                          torch::TensorOptions(query.device()).dtype(torch::kLong));
  const auto& [beta, length] = *options.query_growth();
  const torch::Tensor whole = (positions.to(torch::kFloat) / static_cast<double>(length)).floor();
  const torch::Tensor factors = 1.0 + beta * torch::log(1.0 + whole);  // (L) or (B, L)
  heads.query = query * factors.to(query.scalar_type()).unsqueeze(-1).unsqueeze(-3);
}

void MultiheadAttentionImpl::rotate(functional::Heads& heads, int64_t offset,
                                    const torch::Tensor& position_ids,
                                    const torch::Tensor& key_position_ids) {
  TORCH_CHECK_VALUE(rotary || !(position_ids.defined() || key_position_ids.defined()),
                    "[MultiheadAttention] position_ids are for a rotary embedding, which "
                    "options.rotary has. Got some without one");
  if (!rotary) return;
  const RotaryOptions& o = rotary->options.rotary();
  const auto dtype = heads.query.scalar_type();
  TORCH_CHECK_VALUE(
      o.arithmetic() != rotary::Arithmetic::Widened || !at::isReducedFloatingType(dtype),
      "[MultiheadAttention] Arithmetic::Widened (codegen, clvp) makes q and k "
      "float32, which attention to values of another dtype does not take: the module "
      "must be float32. Got ",
      dtype);
  if (heads.query.size(2) != heads.key.size(2) || key_position_ids.defined())
    return rotate_apart(heads, position_ids, key_position_ids);
  std::tie(heads.query, heads.key) = rotary->forward(heads.query, heads.key, offset, position_ids);
  if (o.rotary_value())
    heads.value = std::get<0>(rotary->forward(heads.value, {}, offset, position_ids));
}

// Queries and keys with positions of their own. They have one table, so that a scaling that depends
// on the length has one set of frequencies.
void MultiheadAttentionImpl::rotate_apart(functional::Heads& heads,
                                          const torch::Tensor& position_ids,
                                          const torch::Tensor& key_position_ids) {
  TORCH_CHECK_VALUE(position_ids.defined() && key_position_ids.defined(),
                    "[MultiheadAttention] a rotary embedding needs both position_ids and "
                    "key_position_ids where query and key differ in length. Got lengths ",
                    heads.query.size(2), " and ", heads.key.size(2), " and ",
                    position_ids.defined()       ? "no key_position_ids"
                    : key_position_ids.defined() ? "no position_ids"
                                                 : "neither");
  TORCH_CHECK_VALUE(position_ids.dim() == key_position_ids.dim(),
                    "[MultiheadAttention] position_ids and key_position_ids must have the same "
                    "number of axes. Got ",
                    position_ids.sizes(), " and ", key_position_ids.sizes());
  const RotaryOptions& o = rotary->options.rotary();
  const int64_t axis = o.axial() ? -2 : -1, queries = heads.query.size(2);
  const RotaryCosSin all = rotary->cos_sin(torch::cat({position_ids, key_position_ids}, axis),
                                           heads.query.scalar_type());
  const auto rows = [&](int64_t begin, int64_t count) {
    const auto of = [&](const torch::Tensor& t) {
      return t.defined() ? t.narrow(-2, begin, count) : t;
    };
    return RotaryCosSin{of(all.cos), of(all.sin), of(all.scale)};
  };
  const auto func_options =
      functional::RotaryFuncOptions().head_axis(rotary::HeadAxis::BeforeLength);
  const RotaryCosSin of_keys = rows(queries, heads.key.size(2));
  heads.query = std::get<0>(functional::rotary(heads.query, {}, rows(0, queries), o, func_options));
  heads.key = std::get<1>(functional::rotary({}, heads.key, of_keys, o, func_options));
  if (o.rotary_value())
    heads.value = std::get<0>(functional::rotary(heads.value, {}, of_keys, o, func_options));
}

KeyValueCache MultiheadAttentionImpl::make_cache(int64_t batch, int64_t capacity,
                                                 std::optional<int64_t> window) const {
  TORCH_CHECK_VALUE(batch >= 0, "[MultiheadAttention] batch must not be negative. Got ", batch);
  const int64_t kv_heads = options.num_kv_heads().value_or(options.num_heads());
  const auto like = torch::empty({batch, kv_heads, 0, head_dim()}, out_proj->weight.options());
  return {{{}, like, like}, capacity, window};
}

torch::Tensor MultiheadAttentionImpl::step(const torch::Tensor& x, KeyValueCache& cache,
                                           const AttentionMask& mask,
                                           const torch::Tensor& position_ids) {
  TORCH_CHECK_VALUE(options.batch_first(),
                    "[MultiheadAttention] step() needs batch_first. Got batch_first(false)");
  check_steps(rotary);
  const torch::NoGradGuard no_grad;
  const int64_t before = cache.length();
  const RotaryLengths lengths = rotary ? RotaryEmbeddingAccess::lengths(*rotary) : RotaryLengths();
  const AttentionMask own = mask.after(before);
  try {
    functional::Heads heads = split_heads(x, x, x);
    apply_positions(heads, position_ids.defined() ? 0 : before, position_ids, {});
    // A single token may attend to all that are cached, and to itself.
    const AttentionMask all = x.size(1) == 1 ? own : own & AttentionMask::causal(before);
    const functional::Heads kept = cache.append(heads);
    const int64_t dropped = cache.length() - kept.key.size(2);
    return attend_heads(kept, AttentionMaskAccess::without_first_keys(all, dropped),
                        before - dropped);
  } catch (...) {
    cache.truncate(before);
    if (rotary) RotaryEmbeddingAccess::set_lengths(*rotary, lengths);
    throw;
  }
}

functional::Heads MultiheadAttentionImpl::split_heads(const torch::Tensor& query,
                                                      const torch::Tensor& key,
                                                      const torch::Tensor& value) const {
  functional::Heads heads =
      functional::split_heads(query, key, value, weights(), options.num_heads());
  if (const auto clip = options.qkv_clip()) {
    for (torch::Tensor* one : {&heads.query, &heads.key, &heads.value})
      if (one->defined()) *one = one->clamp(-*clip, *clip);
  }
  if (!options.qk_norm_after_rotary()) normalise(heads);
  if (options.value_norm() && heads.value.defined())
    heads.value = at::rms_norm(heads.value, {head_dim()}, {}, options.qk_norm_eps());
  return heads;
}

void MultiheadAttentionImpl::normalise(functional::Heads& heads) const {
  const auto apply = [&](const TransformerNorm& norm, torch::Tensor& x) {  // (B, H, L, Dh)
    if (!norm || !x.defined()) return;
    const torch::Tensor rows = x.transpose(1, 2);
    if (options.qk_norm_whole()) {
      x = norm.ptr()->forward(rows.flatten(2)).unflatten(2, {x.size(1), x.size(3)}).transpose(1, 2);
    } else if (options.qk_norm_per_head()) {
      x = norm.ptr()->forward(rows).transpose(1, 2);
    } else {
      x = norm.ptr()->forward(x);
    }
  };
  apply(q_norm, heads.query);
  apply(k_norm, heads.key);
}

// The mask and the relative bias, for queries after `offset` others.
AttentionMask MultiheadAttentionImpl::with_bias(const functional::Heads& heads,
                                                const AttentionMask& mask, int64_t offset) const {
  if (!relative_attention_bias || heads.query.dim() != 4 || heads.key.dim() != 4) return mask;
  return mask & AttentionMask::additive(relative_attention_bias.ptr()->forward(
                    heads.query.size(2), heads.key.size(2), offset));
}

torch::Tensor MultiheadAttentionImpl::attend_heads(const functional::Heads& heads,
                                                   const AttentionMask& mask,
                                                   int64_t offset) const {
  return functional::attend_heads(heads, weights(), func_options(with_bias(heads, mask, offset)));
}

functional::MultiheadAttentionFuncOptions MultiheadAttentionImpl::func_options(
    const AttentionMask& mask) const {
  return functional::MultiheadAttentionFuncOptions(options.num_heads())
      .mask(mask)
      .scale(options.scale())
      .softcap(options.softcap())
      .dropout(options.dropout())
      .training(is_training())
      .python_dropout_order(options.python_dropout_order());
}

functional::MultiheadAttentionWeights MultiheadAttentionImpl::weights() const {
  return {in_proj_weight, q_proj_weight,    k_proj_weight, v_proj_weight,
          in_proj_bias,   out_proj->weight, out_proj->bias};
}

}  // namespace posenc
