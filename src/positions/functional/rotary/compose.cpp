#include "positions/functional/rotary/compose.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

namespace posenc::functional {
namespace {

using rotary::Arithmetic;
using rotary::CosLayout;
using rotary::Pairing;

// The two members of each pair, (..., n) each.
struct Members {
  at::Tensor first, second;
};

Members adjacent(const at::Tensor& t) {
  return {t.slice(-1, 0, t.size(-1), 2), t.slice(-1, 1, t.size(-1), 2)};
}

Members halves(const at::Tensor& t) {
  const int64_t n = t.size(-1) / 2;
  return {t.slice(-1, 0, n), t.slice(-1, n)};
}

bool is_halves(const RotaryOptions& o) {
  return o.pairing() == Pairing::Halves || o.pairing() == Pairing::HalvesPerAxis ||
         o.pairing() == Pairing::HalvesPerHead;
}

// The factors of the two members of each pair. With CosLayout::Halves and adjacent pairs, both
// members use the first half of a row.
Members factors(const at::Tensor& t, const RotaryOptions& o) {
  switch (o.cos_layout()) {
    case CosLayout::Pairs:
    case CosLayout::HalvesPerAxis: return is_halves(o) ? halves(t) : adjacent(t);
    case CosLayout::Halves:
      if (is_halves(o)) return halves(t);
      return {halves(t).first, halves(t).first};
    case CosLayout::Single:
    case CosLayout::Complex: break;
  }
  return {t, t};
}

at::Tensor joined(const Members& y, bool adjacent) {
  if (adjacent) return at::stack({y.first, y.second}, -1).flatten(-2);
  return at::cat({y.first, y.second}, -1);
}

// Returns pairs (..., 2) in a form that LibTorch can view as complex numbers, which have to begin
// at even offsets: a copy if they do not, and undefined for undefined ones.
at::Tensor at_even_offsets(const at::Tensor& pairs) {
  if (!pairs.defined()) return pairs;
  bool even = pairs.stride(-1) == 1 && pairs.storage_offset() % 2 == 0;
  for (const int64_t stride : pairs.strides().slice(0, pairs.dim() - 1)) even &= stride % 2 == 0;
  return even ? pairs : pairs.clone(at::MemoryFormat::Contiguous);
}

// The pairs (..., n, 2) of n complex numbers. The gradient of a slice of odd width may begin
// anywhere, which the backward of view_as_real() rejects.
at::Tensor as_real(const at::Tensor& numbers) {
  at::Tensor pairs = at::view_as_real(numbers);
  if (pairs.requires_grad()) pairs.register_hook(at_even_offsets);
  return pairs;
}

at::Tensor complex_product(const at::Tensor& x, const RotaryCosSin& table) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() /= 2;
  sizes.push_back(2);
  const bool wide = table.cos.scalar_type() == at::kDouble;
  const at::ScalarType type = wide ? at::kDouble : at::kFloat;
  const at::Tensor pairs = at::view_as_complex(at_even_offsets(x.to(at::kFloat).reshape(sizes)));
  return as_real(pairs * at::complex(table.cos.to(type), table.sin.to(type))).flatten(-2);
}

// x (..., D) -> (..., D), in the dtype of the arithmetic.
at::Tensor rotated(const at::Tensor& x, const RotaryCosSin& table, const RotaryOptions& o,
                   bool inverse) {
  const Members in = reads_adjacent(o, inverse) ? adjacent(x) : halves(x);
  const Members c = factors(table.cos, o), s = factors(table.sin, o);
  if (o.arithmetic() == Arithmetic::Addcmul) {
    return joined({at::addcmul(in.first * c.first, -s.first, in.second),
                   at::addcmul(in.second * c.second, s.second, in.first)},
                  writes_adjacent(o, inverse));
  }
  if (!table.scale.defined()) {
    return joined(
        {in.first * c.first - in.second * s.first, in.second * c.second + in.first * s.second},
        writes_adjacent(o, inverse));
  }
  const Members by = factors(table.scale, o);
  return joined({in.first * c.first * by.first - in.second * s.first * by.first,
                 in.second * c.second * by.second + in.first * s.second * by.second},
                writes_adjacent(o, inverse));
}

// The table in another dtype.
RotaryCosSin converted(const RotaryCosSin& table, at::ScalarType type) {
  return {table.cos.to(type), table.sin.to(type),
          table.scale.defined() ? table.scale.to(type) : at::Tensor()};
}

// (..., W) as (..., count, W / count)
at::Tensor in_blocks(const at::Tensor& t, int64_t count) {
  std::vector<int64_t> sizes = t.sizes().vec();
  sizes.back() /= count;
  sizes.insert(sizes.end() - 1, count);
  return t.reshape(sizes);
}

at::Tensor by_arithmetic(const at::Tensor& x, const RotaryCosSin& table, const RotaryOptions& o,
                         bool inverse) {
  const at::ScalarType type = x.scalar_type();
  switch (o.arithmetic()) {
    case Arithmetic::Input: return rotated(x, converted(table, type), o, inverse);
    case Arithmetic::Promoted: return rotated(x, table, o, inverse).to(type);
    case Arithmetic::Widened: return rotated(x, table, o, inverse);
    case Arithmetic::Float32:
    case Arithmetic::Addcmul:
      return rotated(x.to(at::kFloat), converted(table, at::kFloat), o, inverse).to(type);
    case Arithmetic::BFloat16:
      return rotated(x.to(at::kFloat), converted(table, at::kFloat), o, inverse)
          .to(at::kBFloat16)
          .to(type);
    case Arithmetic::Float64:
      return rotated(x.to(at::kDouble), converted(table, at::kDouble), o, inverse).to(type);
    case Arithmetic::Complex: break;
  }
  return complex_product(x, table).to(type);
}

at::Tensor rotated_part(const at::Tensor& x, const RotaryCosSin& table, const RotaryOptions& o,
                        bool inverse) {
  const int64_t count = blocks_of_pairs(o);
  if (count == 1) return by_arithmetic(x, table, o, inverse);
  const RotaryCosSin by_block{in_blocks(table.cos, count), in_blocks(table.sin, count)};
  return by_arithmetic(in_blocks(x, count), by_block, o, inverse).flatten(-2);
}

}  // namespace

int64_t blocks_of_pairs(const RotaryOptions& o) {
  if (o.pairing() == Pairing::HalvesPerAxis) return o.plane_count();
  return o.pairing() == Pairing::HalvesPerHead ? o.joined_heads() : 1;
}

bool reads_adjacent(const RotaryOptions& o, bool inverse) {
  return o.pairing() == Pairing::Adjacent || (o.pairing() == Pairing::AdjacentToHalves && !inverse);
}

bool writes_adjacent(const RotaryOptions& o, bool inverse) {
  return o.pairing() == Pairing::Adjacent || (o.pairing() == Pairing::AdjacentToHalves && inverse);
}

at::Tensor composed_rotary(const at::Tensor& x, const RotaryCosSin& table, const RotaryOptions& o,
                           bool inverse) {
  RotaryCosSin own = table;
  if (inverse != o.reversed()) own.sin = -own.sin;
  const int64_t width = o.rotary_dim(), passing = x.size(-1) - width;
  if (passing == 0) return rotated_part(x, own, o, inverse);
  const bool last = o.part() == rotary::Part::Last;
  const at::Tensor rotating = last ? x.slice(-1, passing) : x.slice(-1, 0, width);
  const at::Tensor rest = last ? x.slice(-1, 0, passing) : x.slice(-1, width);
  const at::Tensor y = rotated_part(rotating, own, o, inverse);
  return last ? at::cat({rest, y}, -1) : at::cat({y, rest}, -1);
}

at::Tensor rotated_heads(const at::Tensor& x, const RotaryCosSin& table, const RotaryOptions& o,
                         const RotaryFuncOptions& func_options) {
  if (!x.defined()) return {};
  const bool heads_first = before_length(func_options);
  const int64_t heads = heads_axis(func_options);
  // (L, W), (B, L, W) or (B, H, L, W), with the axes of x
  const auto beside = [&](at::Tensor t) {
    const bool per_head = t.dim() == 4;
    if (t.dim() > 2 && x.dim() == 3) t = t.select(0, 0);
    if (!per_head) return t.unsqueeze(heads);
    return heads_first ? t : t.transpose(-3, -2);
  };
  const at::Tensor cos = beside(table.cos), sin = beside(table.sin);
  const at::Tensor scale = table.scale.defined() ? beside(table.scale) : at::Tensor();
  const auto rotate = [&](const at::Tensor& part) {
    const auto of_part = [&](const at::Tensor& t) {
      return !t.defined() || t.size(heads) == 1 ? t : t.slice(heads, 0, part.size(heads));
    };
    return composed_rotary(part, {of_part(cos), of_part(sin), of_part(scale)}, o,
                           func_options.inverse());
  };
  const int64_t rotating = o.rotary_heads();
  if (rotating == 0 || rotating >= x.size(heads)) return rotate(x);
  return at::cat({rotate(x.slice(heads, 0, rotating)), x.slice(heads, rotating)}, heads);
}

}  // namespace posenc::functional
