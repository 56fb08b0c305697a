#include "posenc/positions/functional/rotary.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>
#include <c10/util/Exception.h>

#include "core/check.h"
#include "core/torch_internals/shortcut.h"
#include "positions/functional/lookup.h"
#include "positions/functional/rotary/compose.h"
#include "positions/functional/rotary/fused.h"

namespace posenc::functional {
namespace {

// `func_options` with the axes of the options unless it has its own.
RotaryFuncOptions with_axes(const RotaryFuncOptions& func_options, const RotaryOptions& options) {
  return RotaryFuncOptions(func_options)
      .head_axis(func_options.head_axis().value_or(options.head_axis()));
}

// The tokens that have positions.
at::Tensor after_prefix(const at::Tensor& x, const RotaryFuncOptions& func_options) {
  if (!x.defined() || func_options.prefix_tokens() == 0) return x;
  return x.slice(length_axis(func_options), func_options.prefix_tokens());
}

// `rotated` after the prefix of x.
at::Tensor with_prefix(const at::Tensor& x, const at::Tensor& rotated,
                       const RotaryFuncOptions& func_options) {
  if (!x.defined() || func_options.prefix_tokens() == 0) return rotated;
  const int64_t axis = length_axis(func_options);
  return at::cat({x.slice(axis, 0, func_options.prefix_tokens()), rotated}, axis);
}

void check_heads(const char* name, const at::Tensor& x, const RotaryOptions& o,
                 const RotaryFuncOptions& func_options) {
  TORCH_CHECK_TYPE(x.is_floating_point(), "[rotary] ", name, " must be floating-point. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(
      x.dim() == 3 || x.dim() == 4, "[rotary] ", name, " must be ",
      before_length(func_options) ? "(B, H, L, Dh) or (H, L, Dh)" : "(B, L, H, Dh) or (T, H, Dh)",
      ". Got ", x.sizes());
  const bool fits =
      o.part() == rotary::Part::Whole ? x.size(-1) == o.rotary_dim() : x.size(-1) >= o.rotary_dim();
  TORCH_CHECK_VALUE(fits, "[rotary] ", name, " must have ",
                    o.part() == rotary::Part::Whole ? "" : "at least ", o.rotary_dim(),
                    " channels in its last axis, which rotate. Got ", x.sizes());
  TORCH_CHECK_VALUE(func_options.prefix_tokens() >= 0 &&
                        func_options.prefix_tokens() <= x.size(length_axis(func_options)),
                    "[rotary] prefix_tokens must lie in [0, ", x.size(length_axis(func_options)),
                    "], the tokens of ", name, ". Got ", func_options.prefix_tokens());
}

void check_pair(const at::Tensor& q, const at::Tensor& k, const RotaryOptions& o,
                const RotaryFuncOptions& func_options) {
  TORCH_CHECK_VALUE(q.defined() || k.defined(), "[rotary] q or k must be a tensor");
  const bool two_angles =
      o.planes() == rotary::Planes::Doubled ||
      (o.cos_layout() == rotary::CosLayout::HalvesPerAxis &&
       o.pairing() != rotary::Pairing::HalvesPerAxis) ||
      (o.cos_layout() == rotary::CosLayout::Pairs && o.pairing() != rotary::Pairing::Adjacent);
  TORCH_CHECK_VALUE(
      !func_options.inverse() || !two_angles,
      "[rotary] inverse must be false with Planes::Doubled and the layouts of V-JEPA 2 and "
      "ERNIE-Image, where the two channels of a pair may rotate by different angles. Got true");
  if (q.defined()) check_heads("q", q, o, func_options);
  if (k.defined()) check_heads("k", k, o, func_options);
  if (!q.defined() || !k.defined()) return;
  TORCH_CHECK_TYPE(q.scalar_type() == k.scalar_type(), "[rotary] q and k must have one dtype. Got ",
                   q.scalar_type(), " and ", k.scalar_type());
}

// Checks that cos and sin match q and k: (L, W), (B, L, W) or (B, H, L, W).
void check_table(const at::Tensor& x, const RotaryCosSin& table, const RotaryOptions& o,
                 const RotaryFuncOptions& func_options) {
  if (!x.defined()) return;
  for (const at::Tensor* t : {&table.cos, &table.sin}) {
    TORCH_CHECK_VALUE(t->defined() && t->is_floating_point() && t->dim() >= 2 && t->dim() <= 4 &&
                          t->size(-1) == o.cos_width(),
                      "[rotary] cos and sin must be floating-point (L, W), (B, L, W) or (B, H, L, "
                      "W), W = ",
                      o.cos_width(), ". Got ",
                      t->defined() ? c10::str(t->scalar_type(), " ", t->sizes()) : "no tensor");
    const bool batched = t->dim() > 2 && t->size(0) != 1;
    TORCH_CHECK_VALUE(t->size(-2) == x.size(length_axis(func_options)) &&
                          (!batched || (x.dim() == 4 && t->size(0) == x.size(0))),
                      "[rotary] cos and sin must have the batch and length of q and k. Got ",
                      t->sizes(), " for ", x.sizes());
    TORCH_CHECK_VALUE(
        t->dim() < 4 || t->size(1) == 1 || t->size(1) == x.size(heads_axis(func_options)),
        "[rotary] cos and sin with a row for each head must have the heads of q and "
        "k. Got ",
        t->sizes(), " for ", x.sizes());
  }
}

at::Tensor positions_of(const at::Tensor& q, const at::Tensor& k, const RotaryOptions& o,
                        const RotaryFuncOptions& func_options) {
  const at::Tensor& x = q.defined() ? q : k;
  const int64_t length = x.size(length_axis(func_options)) - func_options.prefix_tokens();
  check_rotary_offset("rotary", o, func_options.offset(), func_options.position_ids(), length);
  if (func_options.position_ids().defined()) return func_options.position_ids();
  return at::arange(func_options.offset(), func_options.offset() + length,
                    at::TensorOptions(at::kLong).device(x.device()));
}

// For the functions that take ready cos and sin.
void check_arguments(const at::Tensor& q, const at::Tensor& k, const RotaryOptions& options,
                     const RotaryFuncOptions& func_options) {
  options.validate();
  check_pair(q, k, options, func_options);
  TORCH_CHECK_VALUE(func_options.offset() == 0,
                    "[rotary] cos and sin begin at the first token: offset must be 0 beside them. "
                    "Got ",
                    func_options.offset());
}

void check_tables(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
                  const RotaryOptions& o, const RotaryFuncOptions& func_options) {
  check_table(q, table, o, func_options);
  check_table(k, table, o, func_options);
  TORCH_CHECK_VALUE(
      table.scale.defined() == (o.xpos_scale_base() != 0.0),
      "[rotary] the table must have a scale with xpos_scale_base, and only then. Got ",
      table.scale.defined() ? "a scale" : "no scale");
  TORCH_CHECK_VALUE(!table.scale.defined() || table.scale.sizes() == table.cos.sizes(),
                    "[rotary] scale must have the shape of cos. Got ", table.scale.sizes(), " for ",
                    table.cos.sizes());
  TORCH_CHECK_VALUE(!table.scale.defined() || !func_options.inverse(),
                    "[rotary] xPos has no inverse rotation. Got inverse");
}

// xPos multiplies keys by the inverse of the factor of queries.
RotaryCosSin for_keys(const RotaryCosSin& table) {
  if (!table.scale.defined()) return table;
  return {table.cos, table.sin, at::pow(table.scale, -1.0)};
}

// The rows that position_ids, (L) or (B, L), name in a table of all positions.
RotaryCosSin rows_of(const RotaryCosSin& table, const at::Tensor& ids) {
  TORCH_CHECK_VALUE(table.cos.defined() && table.sin.defined(),
                    "[rotary] cos and sin must be tensors");
  TORCH_CHECK_VALUE(ids.dim() == 1 || ids.dim() == 2,
                    "[rotary] position_ids beside a cache must be (L) or (B, L). Got ",
                    ids.sizes());
  const LookupNames names = {"rotary", "position", "rows"};
  return {lookup(names, ids, table.cos), lookup(names, ids, table.sin),
          table.scale.defined() ? lookup(names, ids, table.scale) : at::Tensor()};
}

bool takes_gradient(const at::Tensor& x) { return x.defined() && torch_internals::is_recorded(x); }

QueryKey rotate(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
                const RotaryOptions& o, const RotaryFuncOptions& func_options) {
  const at::Tensor& ids = func_options.position_ids();
  if (!ids.defined()) check_tables(q, k, table, o, func_options);
  const bool needs_rows =
      ids.defined() && (takes_gradient(q) || takes_gradient(k));  // for backward
  RotaryPlan plan;
  if (!needs_rows && is_fusable(q, k, table, o, func_options, Pass::Forward, plan, ids))
    return rotary_fused(plan, q, k, o, func_options);
  if (ids.defined())
    return rotate(q, k, rows_of(table, ids), o, RotaryFuncOptions(func_options).position_ids({}));
  return {rotated_heads(q, table, o, func_options),
          rotated_heads(k, for_keys(table), o, func_options)};
}

QueryKey rotate_after_prefix(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
                             const RotaryOptions& o, const RotaryFuncOptions& func_options) {
  const auto [q_out, k_out] =
      rotate(after_prefix(q, func_options), after_prefix(k, func_options), table, o, func_options);
  return {with_prefix(q, q_out, func_options), with_prefix(k, k_out, func_options)};
}

void check_out(const char* name, const at::Tensor& out, const at::Tensor& x,
               const RotaryOptions& o) {
  TORCH_CHECK_VALUE(out.defined() == x.defined(), "[rotary] ", name,
                    " must be given exactly when its input is");
  if (!x.defined()) return;
  TORCH_CHECK_TYPE(o.arithmetic() != rotary::Arithmetic::Widened,
                   "[rotary] Arithmetic::Widened changes the dtype: there is no rotation in place. "
                   "Got ",
                   x.scalar_type());
  TORCH_CHECK_TYPE(out.scalar_type() == x.scalar_type(), "[rotary] ", name, " must be ",
                   x.scalar_type(), ". Got ", out.scalar_type());
  TORCH_CHECK_VALUE(out.sizes() == x.sizes() && out.device() == x.device(), "[rotary] ", name,
                    " must have the shape and device of its input, ", x.sizes(), ". Got ",
                    out.sizes());
  TORCH_CHECK_VALUE(!at::GradMode::is_enabled() || !(x.requires_grad() || out.requires_grad()),
                    "[rotary] a rotation into ", name,
                    " records no gradient: use rotary(), or at::NoGradGuard. Got a tensor that "
                    "requires one");
  const char* const rule = torch_internals::write_violation(out);
  TORCH_CHECK_VALUE(rule == nullptr, "[rotary] ", name, " to be written ", rule);
}

void rotate_into(const at::Tensor& q_out, const at::Tensor& k_out, const at::Tensor& q,
                 const at::Tensor& k, const RotaryCosSin& table, const RotaryOptions& options,
                 const RotaryFuncOptions& func_options) {
  const at::Tensor& ids = func_options.position_ids();
  if (!ids.defined()) check_tables(q, k, table, options, func_options);
  RotaryPlan plan;
  if (may_write(q_out, q, k, k_out, table, func_options) &&
      may_write(k_out, k, q, q_out, table, func_options) &&
      is_fusable(q, k, table, options, func_options, Pass::Forward, plan, ids))
    return rotary_fused_out(plan, q_out, k_out, q, k, func_options);
  if (ids.defined())
    return rotate_into(q_out, k_out, q, k, rows_of(table, ids), options,
                       RotaryFuncOptions(func_options).position_ids({}));
  const at::Tensor rotated_q = rotated_heads(q, table, options, func_options);
  const at::Tensor rotated_k = rotated_heads(k, for_keys(table), options, func_options);
  if (q.defined()) q_out.copy_(rotated_q);
  if (k.defined()) k_out.copy_(rotated_k);
}

// The tokens of x that are not rotated, which are copied to the result after the rotation. They are
// cloned if the rotation may overwrite them, and undefined if they are already in place.
at::Tensor prefix_of(const at::Tensor& x, const at::Tensor& out, const at::Tensor& other_out,
                     const RotaryFuncOptions& func_options) {
  if (!x.defined() || func_options.prefix_tokens() == 0 || out.is_same(x)) return {};
  const at::Tensor prefix = x.slice(length_axis(func_options), 0, func_options.prefix_tokens());
  const bool written = torch_internals::share_memory(prefix, out) ||
                       torch_internals::share_memory(prefix, other_out);
  return written ? prefix.clone() : prefix;
}

void write_prefix(const at::Tensor& out, const at::Tensor& prefix,
                  const RotaryFuncOptions& func_options) {
  if (prefix.defined())
    out.slice(length_axis(func_options), 0, func_options.prefix_tokens()).copy_(prefix);
}

}  // namespace

void check_rotary_offset(const char* module, const RotaryOptions& o, int64_t offset,
                         const at::Tensor& position_ids, int64_t tokens) {
  if (position_ids.defined()) {
    TORCH_CHECK_VALUE(offset == 0, "[", module,
                      "] position_ids are absolute: offset must be 0 beside them. Got ", offset);
    return;
  }
  TORCH_CHECK_VALUE(offset >= 0 && offset <= kPositionLimit - tokens, "[", module,
                    "] offset must not be negative, and positions must be below 2^31. Got ", offset,
                    " for ", tokens, " tokens");
  TORCH_CHECK_VALUE(offset == 0 || o.xpos_scale_base() == 0.0 || o.xpos_middle(), "[", module,
                    "] xPos with an offset needs RotaryOptions::xpos_middle, the same for all "
                    "calls of a sequence. Got no xpos_middle and offset ",
                    offset);
}

QueryKey rotary(const at::Tensor& q, const at::Tensor& k, const RotaryOptions& options,
                const RotaryFuncOptions& given) {
  options.validate();
  const RotaryFuncOptions func_options = with_axes(given, options);
  check_pair(q, k, options, func_options);
  const at::ScalarType dtype = (q.defined() ? q : k).scalar_type();
  const RotaryCosSin table =
      rotary_cos_sin(options, positions_of(q, k, options, func_options), dtype);
  return rotate_after_prefix(q, k, table, options,
                             RotaryFuncOptions(func_options).position_ids({}).offset(0));
}

QueryKey rotary(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
                const RotaryOptions& options, const RotaryFuncOptions& given) {
  const RotaryFuncOptions func_options = with_axes(given, options);
  check_arguments(q, k, options, func_options);
  return rotate_after_prefix(q, k, table, options, func_options);
}

void rotary_(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
             const RotaryOptions& options, const RotaryFuncOptions& func_options) {
  rotary_out(q, k, q, k, table, options, func_options);
}

void rotary_out(const at::Tensor& q_out, const at::Tensor& k_out, const at::Tensor& q,
                const at::Tensor& k, const RotaryCosSin& table, const RotaryOptions& options,
                const RotaryFuncOptions& given) {
  const RotaryFuncOptions func_options = with_axes(given, options);
  check_arguments(q, k, options, func_options);
  check_out("q", q_out, q, options);
  check_out("k", k_out, k, options);
  for (const at::Tensor* t : {&table.cos, &table.sin, &table.scale})
    TORCH_CHECK_VALUE(!t->defined() || !takes_gradient(*t),
                      "[rotary] a rotation into existing tensors records no gradient: cos and sin "
                      "must not require one. Got ones that do");
  const at::Tensor q_prefix = prefix_of(q, q_out, k_out, func_options);
  const at::Tensor k_prefix = prefix_of(k, k_out, q_out, func_options);
  rotate_into(after_prefix(q_out, func_options), after_prefix(k_out, func_options),
              after_prefix(q, func_options), after_prefix(k, func_options), table, options,
              func_options);
  write_prefix(q_out, q_prefix, func_options);
  write_prefix(k_out, k_prefix, func_options);
}

}  // namespace posenc::functional
