#include "positions/sinusoid/exact.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/exact/table_writer.h"
#include "positions/sinusoid/frequency.h"

namespace posenc {
namespace {

namespace kernel = exact;  // including the types of kernels::sincos

constexpr int64_t kGrain = 128;  // rows

void require(bool defined, const char* what) {
  TORCH_CHECK_VALUE(defined, "[sinusoid] Precision::Exact is not defined for ", what,
                    ": use Precision::Reference. Got such a recipe");
}

bool sine_and_cosine_differ(const SinusoidOptions& o) {
  return o.index() == sinusoid::Index::Doubled;
}

kernel::RowLayout layout_of(const Columns& sin, const Columns& cos, int64_t width) {
  kernel::RowLayout layout;
  layout.sin_offset = sin.first;
  layout.sin_stride = sin.step;
  layout.sin_count = sin.count;
  layout.cos_offset = cos.first;
  layout.cos_stride = cos.step;
  layout.cos_count = cos.count;
  layout.row_stride = width;
  return layout;
}

void write(const kernel::FrequencySpec& spec, const kernel::RowLayout& layout,
           const kernel::Positions& positions, at::Tensor& out) {
  const kernel::Frequencies frequencies(spec);
  const kernel::TableWriter writer(frequencies, positions, out.size(0),
                                   exact_format(out.scalar_type()));
  kernel::Destination to;
  to.data = out.data_ptr();
  to.layout = layout;
  at::parallel_for(0, out.size(0), kGrain,
                   [&](int64_t begin, int64_t end) { writer.write(begin, end, to); });
}

// A view of a contiguous int64 or float64 tensor, which has to outlive it.
kernel::Positions in(const at::Tensor& positions) {
  kernel::Positions where;
  if (positions.scalar_type() == at::kLong) {
    where.integers = positions.const_data_ptr<int64_t>();
  } else {
    where.reals = positions.const_data_ptr<double>();
  }
  return where;
}

void fill_axis(const SinusoidOptions& o, int64_t axis, const kernel::Positions& where,
               at::Tensor& out) {
  const int64_t width = o.axis_widths()[axis];
  Columns sin = columns(o, axis, false), cos = columns(o, axis, true);
  if (o.index() == sinusoid::Index::PairedHalf) {  // each frequency fills two adjacent columns
    for (const int64_t copy : {0, 1}) {
      auto spec = exact_frequencies(o, width, false);
      const auto part = [&](const Columns& c) {
        return Columns{c.first + copy * c.step, 2 * c.step, (c.count + 1 - copy) / 2};
      };
      spec.count = part(sin).count;
      if (spec.count > 0) write(spec, layout_of(part(sin), part(cos), out.size(1)), where, out);
    }
    return;
  }
  if (!sine_and_cosine_differ(o)) {
    write(exact_frequencies(o, width, false), layout_of(sin, cos, out.size(1)), where, out);
    return;
  }
  write(exact_frequencies(o, width, false), layout_of(sin, {}, out.size(1)), where, out);
  write(exact_frequencies(o, width, true), layout_of({}, cos, out.size(1)), where, out);
}

// Whether the frequency, as it enters the angle, falls with the channel. The kernels compute
// nothing else, except for PowersOfTwo, which rises.
bool falls(const SinusoidOptions& o) {
  const bool is_power = o.frequency() == sinusoid::Frequency::Power ||
                        o.frequency() == sinusoid::Frequency::PowerOfProduct;
  return is_power == (o.phase() == sinusoid::Phase::Quotient);
}

}  // namespace

void check_exact(const SinusoidOptions& o) {
  require(o.frequency() != sinusoid::Frequency::ExpFloored, "floored exponents");
  require(o.frequency() != sinusoid::Frequency::Linear, "linearly spaced frequencies");
  require(o.frequency() != sinusoid::Frequency::Periods, "frequencies computed from periods");
  require(o.frequency() == sinusoid::Frequency::PowersOfTwo ? o.phase() == sinusoid::Phase::Product
                                                            : falls(o),
          "this phase with this frequency");
  require(!o.angle_by_length(), "angles that depend on the table's length");
  require(o.post() == sinusoid::Post::None, "a table that is rescaled afterwards");
  require(o.axis_values() == sinusoid::AxisValues::Plain ||
              o.axis_values() == sinusoid::AxisValues::OneBased,
          "normalised coordinates");
  require(2 * o.shift() == std::trunc(2 * o.shift()), "a shift that is not a multiple of 1/2");
  for (const sinusoid::Coordinate& c : o.coordinates()) {
    int exponent = 0;
    require(std::abs(std::frexp(c.factor, &exponent)) == 0.5, "coordinates times no power of two");
  }
}

kernel::FrequencySpec exact_frequencies(const SinusoidOptions& o, int64_t channels, bool cosine) {
  if (o.odd_dim() == sinusoid::OddDim::Widen) channels = o.dim();
  kernel::FrequencySpec spec;
  spec.base = o.base();
  spec.times_pi = o.angle_scale() == std::numbers::pi;
  spec.scale = spec.times_pi ? 1.0 : o.angle_scale();
  spec.count = (channels + 1) / 2;
  if (o.frequency() == sinusoid::Frequency::PowersOfTwo) {
    spec.base = 2.0;
    spec.step = -1;
    spec.denominator = 1;
    return spec;
  }
  // w_k = base ** -((first + k step) / denominator); numerator and denominator are doubled so that
  // a divisor of C / 2 or a shift of 1/2 stays an integer.
  spec.denominator = std::llround(2 * divisor_of(o, channels));
  switch (o.index()) {
    case sinusoid::Index::Even:
    case sinusoid::Index::Paired: spec.step = 4; break;
    case sinusoid::Index::PairNumber:
    case sinusoid::Index::Half: spec.step = 2; break;
    case sinusoid::Index::Doubled:
      spec.first = cosine ? 4 : 0;
      spec.step = 8;
      break;
    case sinusoid::Index::PairedHalf: spec.step = 4; break;
  }
  if (o.frequency() == sinusoid::Frequency::PowerOfProduct) {  // b ** (i * (2 / m))
    spec.first *= 2;
    spec.step *= 2;
  }
  return spec;
}

kernel::Format exact_format(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return kernel::Format::Float32;
    case at::kDouble: return kernel::Format::Float64;
    case at::kBFloat16: return kernel::Format::BFloat16;
    case at::kHalf: return kernel::Format::Float16;
    default:
      TORCH_CHECK_TYPE(false,
                       "[sinusoid] a table must be float32, float64, bfloat16 or float16. "
                       "Got ",
                       dtype);
  }
}

kernel::RowLayout exact_layout(const SinusoidOptions& o, int64_t axis, int64_t width) {
  return layout_of(columns(o, axis, false), columns(o, axis, true), width);
}

at::Tensor exact_rows(const SinusoidOptions& o, const at::Tensor& positions, at::ScalarType dtype) {
  check_exact(o);
  at::Tensor out = empty_rows(o, positions.size(0), dtype);
  for (int64_t axis = 0; axis < o.axes(); ++axis) {
    at::Tensor value = positions;
    if (!o.coordinates().empty()) {
      const sinusoid::Coordinate& c = o.coordinates()[axis];
      value = value.to(at::kDouble);
      if (c.complement) value = value.neg().add_(1.0);
      value = value.mul(c.factor);
    }
    if (o.raw_first()) out.select(1, axis).copy_(value);
    const at::Tensor values = value.contiguous();
    fill_axis(o, axis, in(values), out);
  }
  return cropped(o, out);
}

at::Tensor exact_rows(const SinusoidOptions& o, const RowSequence& rows, at::ScalarType dtype) {
  if (!o.coordinates().empty() || o.raw_first()) {
    const at::TensorOptions integers(at::kLong);
    return exact_rows(o, at::arange(rows.count, integers) * rows.step + rows.start, dtype);
  }
  check_exact(o);
  at::Tensor out = empty_rows(o, rows.count, dtype);
  kernel::Positions where;
  where.start = rows.start;
  where.step = rows.step;
  fill_axis(o, 0, where, out);
  return cropped(o, out);
}

at::Tensor exact_grid(const SinusoidOptions& o, at::ScalarType dtype) {
  check_exact(o);
  at::Tensor out = empty_rows(o, cells(o), dtype);
  const int64_t origin = o.axis_values() == sinusoid::AxisValues::OneBased ? 1 : 0;
  for (int64_t block = 0; block < o.axes(); ++block) {
    const int64_t extent = o.grid()[grid_axis(o, block)];
    at::Tensor line = at::empty({extent, out.size(1)}, out.options());
    kernel::Positions where;
    where.start = origin;
    fill_axis(o, block, where, line);
    spread(o, block, line, out);
  }
  return cropped(o, out);
}

}  // namespace posenc
