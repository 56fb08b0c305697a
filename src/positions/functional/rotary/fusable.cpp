#include "positions/functional/rotary/fusable.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <utility>

#include "core/torch_internals/shortcut.h"
#include "kernels/dispatch.h"
#include "positions/functional/dispatch.h"
#include "positions/functional/probe.h"
#include "positions/functional/rotary/compose.h"

namespace posenc::functional {
namespace {

namespace rotary_kernel = kernels::rotary;
using rotary::Arithmetic;
using rotary::CosLayout;
using rotary::Pairing;
using torch_internals::is_plain;

// ATen's complex product on x86-64 fuses additions in the tail of a row whose length is not a
// multiple of this.
constexpr int64_t kWholeComplexVectors = 8;

bool complex_product_rounds_each() {
  const at::NoGradGuard no_grad;
  constexpr int64_t kCount = 4 * kWholeComplexVectors;
  const at::Tensor x = scattered({kCount, 2}, 1.7), y = scattered({kCount, 2}, 2.9);
  const at::Tensor product =
      at::view_as_real(at::mul(at::view_as_complex(x), at::view_as_complex(y)));
  const at::Tensor a = x.select(1, 0), b = x.select(1, 1), c = y.select(1, 0), d = y.select(1, 1);
  return at::equal(product, at::stack({a * c - b * d, a * d + b * c}, 1));
}

bool has_whole_rows(const at::Tensor& t) {
  return t.strides().back() == 1 || t.sizes().back() == 1;
}

// Where the arithmetic rounds. The reference is by_arithmetic() in compose.cpp and its autograd,
// which rounds the terms of a gradient to the type that was promoted.
bool plan_arithmetic(at::ScalarType type, at::ScalarType of_table, const RotaryOptions& o,
                     Pass pass, RotaryPlan& plan) {
  const bool is_half = at::isReducedFloatingType(type), is_wide = of_table != type;
  if (is_wide && of_table != at::kFloat) return false;
  rotary_kernel::Angles& a = plan.rotation.angles;
  a.is_float = of_table == at::kFloat;
  a.round = false;
  bool once = false;
  switch (o.arithmetic()) {
    case Arithmetic::Input: a.round = is_half && is_wide; break;
    case Arithmetic::Widened:
      if (is_half && is_wide) return false;
      break;
    case Arithmetic::Float64:
    case Arithmetic::Addcmul: return false;
    case Arithmetic::Promoted: once = is_half && is_wide && pass == Pass::Forward; break;
    case Arithmetic::Complex:
      if (is_half && !is_wide) return false;
      if (o.pairing() != Pairing::Adjacent || o.frequencies() % kWholeComplexVectors != 0 ||
          !has_separate_complex_product())
        return false;
      [[fallthrough]];
    case Arithmetic::BFloat16:
      if (o.arithmetic() == Arithmetic::BFloat16 && type != at::kBFloat16) return false;
      [[fallthrough]];
    case Arithmetic::Float32:
      if (type == at::kDouble) return false;
      once = true;
  }
  return find_type(type, once, plan.type);
}

void plan_layout(const RotaryOptions& o, const RotaryFuncOptions& func_options, Pass pass,
                 rotary_kernel::Rotation& r) {
  r.pairs = o.frequencies();
  const bool halves = o.pairing() == Pairing::Halves;
  const bool by_channel =
      o.cos_layout() == CosLayout::Pairs || o.cos_layout() == CosLayout::HalvesPerAxis;
  r.angles.step = by_channel && !halves ? 2 : 1;
  r.angles.second = by_channel && !halves ? 1 : 0;
  if (halves && (by_channel || o.cos_layout() == CosLayout::Halves)) r.angles.second = r.pairs;
  r.read_adjacent = reads_adjacent(o, func_options.inverse());
  r.write_adjacent = writes_adjacent(o, func_options.inverse());
  r.negative = func_options.inverse() != o.reversed();
  r.transposed = pass == Pass::Backward;
  r.zeros = rotary_kernel::kNoZeros;
  if (!r.transposed) return;
  std::swap(r.read_adjacent, r.write_adjacent);
  if (o.arithmetic() != Arithmetic::Complex) r.zeros |= rotary_kernel::kToPairs;
  if (r.width > o.rotary_dim()) r.zeros |= rotary_kernel::kToHeads;
}

// Adds q or k, which must have the size of the one before it except for the number of heads.
bool plan_heads(const at::Tensor& x, const HeadsShape& like, const RotaryOptions& o,
                const RotaryFuncOptions& func_options, rotary_kernel::Rotation& r) {
  if (!is_plain(x) || x.numel() == 0 || !has_whole_rows(x)) return false;
  const HeadsShape s(x, head_axis_of(func_options));
  if (s.batch != like.batch || s.length != like.length || s.width != like.width) return false;
  if (s.width < o.rotary_dim()) return false;
  r.length = s.length;
  r.width = s.width;
  r.first = o.part() == rotary::Part::Last ? s.width - o.rotary_dim() : 0;
  r.heads[r.count++] = {
      x.const_data_ptr(), nullptr, s.heads, s.batch_stride, s.head_stride, s.row_stride, 0, 0, 0};
  return true;
}

// Sets the rows of the tokens by their positions.
bool plan_ids(const at::Tensor& ids, const HeadsShape& x, int64_t rows, rotary_kernel::Angles& a) {
  a.ids.data = nullptr;
  if (!ids.defined()) return true;
  if (!is_plain(ids) || !ids.is_contiguous() || ids.dim() < 1 || ids.dim() > 2) return false;
  if (ids.scalar_type() != at::kLong && ids.scalar_type() != at::kInt) return false;
  const bool batched = ids.dim() == 2 && ids.size(0) != 1;
  if (ids.sizes().back() != x.length || (batched && ids.size(0) != x.batch)) return false;
  a.ids = {ids.const_data_ptr(), ids.scalar_type() == at::kLong};
  a.ids_batch = batched ? x.length : 0;
  return kernels::chosen().gather.find_out_of_range(a.ids, ids.numel(), rows) < 0;
}

bool plan_table(const RotaryCosSin& table, const at::Tensor& ids, const HeadsShape& x,
                const RotaryOptions& o, RotaryPlan& plan) {
  for (const at::Tensor* t : {&table.cos, &table.sin}) {
    if (!t->defined() || !is_plain(*t) || torch_internals::is_recorded(*t)) return false;
    const at::IntArrayRef sizes = t->sizes();
    if (sizes.size() != 2 && sizes.size() != 3) return false;
    if (sizes.back() != o.cos_width()) return false;
    if (ids.defined() ? sizes.size() == 3 : sizes[sizes.size() - 2] != x.length) return false;
    if (sizes.size() == 3 && sizes[0] != 1 && sizes[0] != x.batch) return false;
  }
  plan.cos = table.cos;
  plan.sin = table.sin;
  if (table.cos.scalar_type() != table.sin.scalar_type()) return false;
  if (table.cos.sizes() != table.sin.sizes()) return false;
  if (!has_whole_rows(plan.cos) || table.cos.strides() != table.sin.strides()) {
    plan.cos = table.cos.contiguous();
    plan.sin = table.sin.contiguous();
  }
  rotary_kernel::Angles& a = plan.rotation.angles;
  const bool batched = plan.cos.dim() == 3 && plan.cos.size(0) != 1;
  a.cos = plan.cos.const_data_ptr();
  a.sin = plan.sin.const_data_ptr();
  a.batch_stride = batched ? plan.cos.stride(0) : 0;
  a.row_stride = plan.cos.stride(-2);
  return plan_ids(ids, x, plan.cos.size(-2), a);
}

}  // namespace

HeadsShape::HeadsShape(const at::Tensor& x, rotary::HeadAxis axis) {
  const at::IntArrayRef sizes = x.sizes(), strides = x.strides();
  const size_t first = sizes.size() == 4 ? 1 : 0;
  const bool heads_first = axis == rotary::HeadAxis::BeforeLength;
  const size_t head = heads_first ? first : first + 1, row = heads_first ? first + 1 : first;
  batch = first == 1 ? sizes[0] : 1;
  batch_stride = first == 1 ? strides[0] : 0;
  heads = sizes[head];
  head_stride = strides[head];
  length = sizes[row];
  row_stride = strides[row];
  width = sizes[first + 2];
}

bool has_separate_complex_product() {
  static const bool found = complex_product_rounds_each();
  return found;
}

bool is_fusable(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
                const RotaryOptions& options, const RotaryFuncOptions& func_options, Pass pass,
                RotaryPlan& plan, const at::Tensor& ids) {
  const at::Tensor& first = q.defined() ? q : k;
  if (!torch_internals::dispatches_plainly() || (first.dim() != 3 && first.dim() != 4))
    return false;
  if (options.pairing() == Pairing::HalvesPerAxis || blocks_of_pairs(options) != 1)
    return false;  // several rotations a head
  if (options.rotary_heads() != 0 || table.scale.defined() || options.xpos_scale_base() != 0.0)
    return false;
  if (q.defined() && k.defined() && (q.dim() != k.dim() || q.scalar_type() != k.scalar_type()))
    return false;
  const HeadsShape shape(first, head_axis_of(func_options));
  rotary_kernel::Rotation& r = plan.rotation;
  r.count = 0;
  for (const at::Tensor* x : {&q, &k})
    if (x->defined() && !plan_heads(*x, shape, options, func_options, r)) return false;
  if (!plan_table(table, ids, shape, options, plan)) return false;
  plan_layout(options, func_options, pass, r);
  return plan_arithmetic(first.scalar_type(), table.cos.scalar_type(), options, pass, plan);
}

}  // namespace posenc::functional
