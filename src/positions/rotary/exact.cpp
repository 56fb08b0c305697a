#include "positions/rotary/exact.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/platform/memory.h"
#include "core/check.h"
#include "positions/rotary/scaling.h"
#include "positions/sinusoid/exact.h"
#include "positions/sinusoid/exact/bigfloat.h"
#include "positions/sinusoid/exact/table_writer.h"

namespace posenc {
namespace {

using exact::Big;

constexpr int kLimbs = 4;
constexpr int64_t kGrainRows = 128;  // rows
constexpr int64_t kRows = 64;        // rows that are written before their entries are copied

Big big(double value) { return exact::big_from(value, kLimbs); }
Big quotient(const Big& a, const Big& b) { return exact::mul(a, exact::reciprocal(b)); }
Big power(double base, int64_t i, int64_t dim) {
  return exact::inverse_power(base, 2 * i, dim, kLimbs);
}

// The factor of frequency i, which the unscaled formula gives as f.
struct ScaleFactor {
  const RotaryOptions& options;
  int64_t length;
  int64_t i;
  const Big& f;

  // part + (1 - part) / factor
  static Big between(const Big& part, double factor) {
    return exact::add(part, quotient(exact::sub(big(1), part), big(factor)));
  }

  Big operator()(const rotary::Default&) const { return big(1); }
  Big operator()(const rotary::Linear& s) const { return exact::reciprocal(big(s.factor)); }
  Big operator()(const rotary::Proportional& s) const {
    const auto rotating = std::floor(s.proportion * static_cast<double>(options.dim()) / 2.0);
    return static_cast<double>(i) < rotating ? exact::reciprocal(big(s.factor))
                                             : exact::big_zero(kLimbs);
  }
  // alpha^-e, of which float64 has the nearest number r: r^-e (1 + x)^-e, where x is below 2^-52.
  Big operator()(const rotary::Dynamic& s) const {
    const auto most = static_cast<double>(s.max_position);
    const Big longer = big(std::max(static_cast<double>(length), most));
    const Big alpha = exact::sub(quotient(exact::mul(big(s.factor), longer), big(most)),
                                 exact::sub(big(s.factor), big(1)));
    const double rough = exact::to_double(alpha);
    const Big x = quotient(exact::sub(alpha, big(rough)), big(rough));
    const int64_t beyond = options.dim() - 2;
    const Big e = quotient(big(static_cast<double>(2 * i)), big(static_cast<double>(beyond)));
    const Big square = exact::mul(exact::mul(e, exact::add(e, big(1))), exact::mul(x, x));
    const Big near = exact::add(exact::sub(big(1), exact::mul(e, x)), exact::scaled(square, -1));
    return exact::mul(power(rough, i, beyond), near);
  }
  Big operator()(const rotary::NtkAlpha& s) const { return power(s.alpha, i, options.dim() - 2); }
  Big operator()(const rotary::Yarn& s) const {
    const YarnRamp ends = yarn_ramp(s, options.dim(), options.base());
    const auto at = static_cast<double>(i);
    // The ramp (at - low) / (high - low) below 0 and above 1, also where high is below low.
    const bool up = ends.low < ends.high;
    if (up ? at <= ends.low : at >= ends.low) return big(1);
    if (up ? at >= ends.high : at <= ends.high) return exact::reciprocal(big(s.factor));
    return between(
        quotient(exact::sub(big(ends.high), big(at)), exact::sub(big(ends.high), big(ends.low))),
        s.factor);
  }
  Big operator()(const rotary::LongRope& s) const {
    const bool is_long = static_cast<double>(length) > s.original_max_position;
    const auto& factors = is_long ? s.long_factor : s.short_factor;
    return exact::reciprocal(big(factors[static_cast<size_t>(i)]));
  }
  Big operator()(const rotary::PhiMoe& s) const {
    return exact::reciprocal(big(s.short_factor[static_cast<size_t>(i)]));
  }
  Big operator()(const rotary::Llama3& s) const {
    const Big rotations =
        exact::mul(big(s.original_max_position), quotient(f, exact::scaled(exact::pi(kLimbs), 1)));
    const double rough = exact::to_double(rotations);
    if (rough < s.low_freq_factor) return exact::reciprocal(big(s.factor));
    if (rough > s.high_freq_factor || s.high_freq_factor == s.low_freq_factor) return big(1);
    return between(quotient(exact::sub(rotations, big(s.low_freq_factor)),
                            exact::sub(big(s.high_freq_factor), big(s.low_freq_factor))),
                   s.factor);
  }
};

exact::FrequencySpec spec_of(const RotaryOptions& o, const at::Tensor& inv_freq) {
  exact::FrequencySpec spec;
  spec.count = inv_freq.size(-1);
  // Recomputed from the formula, since float64 entries at large positions can need more than 106
  // bits.
  const bool has_formula = std::holds_alternative<rotary::Default>(o.scaling()) &&
                           o.shares_frequencies() && o.position_scale() == 1.0 &&
                           o.angle_divisor() == 1.0 && o.planes() != rotary::Planes::HeightWidth &&
                           o.planes() != rotary::Planes::EvenOdd;
  if (has_formula) {
    spec.base = o.base();
    spec.denominator = o.plane_dims()[0];
    return spec;
  }
  spec.values_high = inv_freq.select(0, 0).const_data_ptr<double>();
  spec.values_low = inv_freq.select(0, 1).const_data_ptr<double>();
  return spec;
}

// Positions that follow each other at equal distances share most of their work.
exact::Positions positions_of(const at::Tensor& ids) {
  constexpr int64_t kWorthwhile = 128;
  const int64_t n = ids.numel();
  exact::Positions where;
  if (ids.is_floating_point()) {
    where.reals = ids.const_data_ptr<double>();
    return where;
  }
  const int64_t* const p = ids.const_data_ptr<int64_t>();
  where.integers = p;
  if (n < kWorthwhile || p[0] < 0 || p[1] <= p[0]) return where;
  for (int64_t i = 1; i < n; ++i)
    if (p[i] - p[i - 1] != p[1] - p[0]) return where;
  if (p[n - 1] >= kPositionLimit) return where;
  where.integers = nullptr;
  where.start = p[0];
  where.step = p[1] - p[0];
  return where;
}

// Copies entries to their second place in rows begin ... end - 1.
template <typename T>
void copy_entries(T* rows, int64_t n, Copies copies, int64_t begin, int64_t end) {
  for (T* row = rows + begin * 2 * n; row < rows + end * 2 * n; row += 2 * n) {
    if (copies == Copies::Halves) {
      std::copy(row, row + n, row + n);
    } else {
      for (int64_t i = 0; i < n; ++i) row[2 * i + 1] = row[2 * i];
    }
  }
}

// (2, ..., W): cos, then sin, at the positions (...).
at::Tensor write_planes(const exact::Frequencies& frequencies, const at::Tensor& ids,
                        at::ScalarType type, Copies copies) {
  const int64_t n = frequencies.view().count, count = ids.numel();
  const int64_t width = copies == Copies::One ? n : 2 * n;
  std::vector<int64_t> sizes = ids.sizes().vec();
  sizes.insert(sizes.begin(), 2);
  sizes.push_back(width);
  at::Tensor planes = at::empty(sizes, at::TensorOptions(type));
  if (platform::benefits_from_huge_pages(planes.nbytes()))
    platform::advise_huge_pages(planes.data_ptr(), planes.nbytes());
  const exact::TableWriter writer(frequencies, positions_of(ids), count, exact_format(type));
  exact::Destination to;
  to.data = planes.data_ptr();
  to.layout.cos_offset = 0;
  to.layout.sin_offset = count * width;
  to.layout.sin_stride = to.layout.cos_stride = copies == Copies::Pairs ? 2 : 1;
  to.layout.sin_count = to.layout.cos_count = n;
  to.layout.row_stride = width;
  const auto copy = [&](auto* rows, int64_t begin, int64_t end) {
    copy_entries(rows, n, copies, begin, end);
    copy_entries(rows + to.layout.sin_offset, n, copies, begin, end);
  };
  const auto write = [&](int64_t begin, int64_t end) {
    writer.write(begin, end, to);
    if (copies == Copies::One) return;
    switch (planes.element_size()) {
      case 2: return copy(static_cast<uint16_t*>(to.data), begin, end);
      case 4: return copy(static_cast<uint32_t*>(to.data), begin, end);
      default: return copy(static_cast<uint64_t*>(to.data), begin, end);
    }
  };
  // Entries are copied while the nearest caches hold them.
  at::parallel_for(0, count, kGrainRows, [&](int64_t begin, int64_t end) {
    for (; begin < end; begin = std::min(end, begin / kRows * kRows + kRows))
      write(begin, std::min(end, begin / kRows * kRows + kRows));
  });
  return planes;
}

}  // namespace

at::Tensor exact_inv_freq(const RotaryOptions& o, int64_t length) {
  const int64_t count = o.frequency_count();
  at::Tensor result = at::empty({2, count}, at::TensorOptions(at::kDouble));
  double* high = result.data_ptr<double>();
  double* low = high + count;
  std::vector<int64_t> dims = o.plane_dims();
  if (o.shares_frequencies()) dims.resize(1);
  for (size_t plane = 0; plane < dims.size(); ++plane) {
    const double base = o.axis_bases().empty() ? o.base() : o.axis_bases()[plane];
    const double divisor = o.axis_divisors().empty() ? o.angle_divisor() : o.axis_divisors()[plane];
    const Big unit = quotient(big(o.position_scale()), big(divisor));
    for (int64_t i = 0; i < (dims[plane] + 1) / 2; ++i, ++high, ++low) {
      const Big f = power(base, i, dims[plane]);
      const Big scale = std::visit(ScaleFactor{o, length, i, f}, o.scaling());
      const Big w = exact::mul(exact::mul(f, scale), unit);
      *high = exact::to_double(w);
      *low = exact::to_double(exact::sub(w, big(*high)));
    }
  }
  return result;
}

RotaryCosSin exact_cos_sin(const RotaryOptions& o, const RotaryFrequencies& f,
                           const at::Tensor& positions, at::ScalarType dtype, Copies copies) {
  const bool scaled = f.attention_scaling != 1.0, real = positions.is_floating_point();
  const at::Tensor ids = positions.to(at::kCPU, real ? at::kDouble : at::kLong).contiguous();
  const at::Tensor values = f.inv_freq.to(at::kCPU, at::kDouble).contiguous();
  at::Tensor planes = write_planes(exact::Frequencies(spec_of(o, values)), ids,
                                   scaled ? at::kDouble : dtype, copies);
  if (scaled) planes = (planes * f.attention_scaling).to(dtype);
  planes = planes.to(positions.device());
  return {planes.select(0, 0), planes.select(0, 1)};
}

}  // namespace posenc
