#include "sinusoid/reference.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <cmath>

#include "sinusoid/frequency.h"

namespace posenc {
namespace {

constexpr int64_t kBlock = 16384;  // elements of an angle's block: it stays in cache
constexpr double kPi = 3.14159265358979323846;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

at::ScalarType row_type(const SinusoidOptions& o) {
  return o.arithmetic() == Arithmetic::Float64 ? at::kDouble : at::kFloat;
}

// Where the sines (function 0) or cosines (1) of an axis stand in the rows: a strided view of `out`
// (N, width), so that nothing is put together or permuted afterwards.
struct Columns {
  int64_t first, step, count;
  at::Tensor of(const at::Tensor& out) const {
    return out.slice(1, first, count == 0 ? first : first + (count - 1) * step + 1, step);
  }
};

Columns columns(const SinusoidOptions& o, int64_t axis, bool cosine) {
  const auto widths = o.axis_widths();
  const int64_t axes = o.axes(), width = widths[axis];
  const int64_t sines = ceil_div(width, 2), count = cosine ? width / 2 : sines;
  int64_t before = o.raw_first() ? axes : 0;
  const int64_t second = cosine != o.cos_first() ? 1 : 0;
  const bool halves = o.layout() == Layout::Halves;
  switch (o.axis_depth()) {
    case AxisDepth::Outer:
      for (int64_t a = 0; a < axis; ++a) before += widths[a];
      return halves ? Columns{before + second * sines, 1, count} : Columns{before + second, 2, count};
    case AxisDepth::Middle:
      return halves ? Columns{before + second * axes * sines + axis * sines, 1, count}
                    : Columns{before + 2 * axis + second, 2 * axes, count};
    case AxisDepth::Inner:
      return halves ? Columns{before + second * axes * sines + axis, axes, count}
                    : Columns{before + second * axes + axis, 2 * axes, count};
  }
  return {};
}

at::Tensor angle_of(const SinusoidOptions& o, const at::Tensor& position, const at::Tensor& f,
                    int64_t length) {
  at::Tensor angle = o.phase() == Phase::Product ? position * f : position / f;
  if (o.angle_by_length()) {
    angle = angle * (static_cast<double>(o.dim()) / static_cast<double>(length));
  }
  if (o.angle_scale() != 1.0) angle = angle * o.angle_scale();
  return o.arithmetic() == Arithmetic::Float64Angle ? angle.to(at::kFloat) : angle;
}

// sin and cos of one axis's positions (N) into their columns of out (N, width).
void fill_axis(const SinusoidOptions& o, int64_t axis, const at::Tensor& positions, int64_t length,
               at::Tensor& out) {
  settle_vector_math();
  const Frequencies f = frequencies(o, o.axis_widths()[axis], positions.size(0));
  const bool shared = f.sin.is_same(f.cos);
  const at::Tensor p = positions.to(f.sin.scalar_type()).unsqueeze(1);
  const int64_t block = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, f.sin.size(-1)));
  const auto part = [](const at::Tensor& t, int64_t begin, int64_t end) {
    return t.dim() == 2 ? t.slice(0, begin, end) : t;
  };
  at::parallel_for(0, ceil_div(p.size(0), block), 1, [&](int64_t first, int64_t last) {
    at::NoGradGuard no_grad;  // thread-local, hence once more in each worker
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i * block, end = std::min(begin + block, p.size(0));
      const at::Tensor rows = out.slice(0, begin, end), here = p.slice(0, begin, end);
      at::Tensor sin = columns(o, axis, false).of(rows), cos = columns(o, axis, true).of(rows);
      const at::Tensor angle = angle_of(o, here, part(f.sin, begin, end), length);
      at::sin_out(sin, angle);
      at::cos_out(cos, shared ? angle.slice(1, 0, cos.size(1))
                              : angle_of(o, here, part(f.cos, begin, end), length));
    }
  });
}

at::Tensor empty_rows(const SinusoidOptions& o, int64_t rows) {
  int64_t width = o.raw_first() ? o.axes() : 0;
  for (const int64_t axis : o.axis_widths()) width += axis;
  const int64_t padded = o.odd_dim() == OddDim::ZeroColumn ? std::max(width, o.dim()) : width;
  at::Tensor out = at::empty({rows, padded}, at::TensorOptions(row_type(o)));
  if (padded > width) out.slice(1, width).zero_();
  return out;
}

at::Tensor cropped(const SinusoidOptions& o, const at::Tensor& out) {
  return o.odd_dim() == OddDim::Truncate ? out.slice(1, 0, o.dim()).contiguous() : out;
}

at::Tensor cell_values(const SinusoidOptions& o, int64_t extent) {
  const at::Tensor v = at::arange(extent, at::TensorOptions(at::kFloat));
  switch (o.axis_values()) {
    case AxisValues::Plain: return v;
    case AxisValues::Scaled:
      return v / (static_cast<double>(extent) / o.base_size()) / o.interpolation_scale();
    case AxisValues::OneBased: return v + 1;
    case AxisValues::Normalized: return (v + 1) / ((v + 1).slice(0, -1) + 1e-6) * (2 * kPi);
    case AxisValues::Centered: return (v + 1 - 0.5) / ((v + 1).slice(0, -1) + 1e-6) * (2 * kPi);
  }
  return v;
}

}  // namespace

at::Tensor reference_rows(const SinusoidOptions& o, const at::Tensor& positions, int64_t length) {
  at::Tensor out = empty_rows(o, positions.size(0));
  if (o.coordinates().empty()) {
    if (o.raw_first()) out.select(1, 0).copy_(positions);
    fill_axis(o, 0, positions, length, out);
    return cropped(o, out);
  }
  for (int64_t axis = 0; axis < o.axes(); ++axis) {
    const Coordinate& c = o.coordinates()[axis];
    const at::Tensor p = c.complement ? 1 - positions : positions;
    const at::Tensor value = c.factor == 1.0 ? p : p * c.factor;
    if (o.raw_first()) out.select(1, axis).copy_(value);
    fill_axis(o, axis, value, length, out);
  }
  return cropped(o, out);
}

at::Tensor reference_grid(const SinusoidOptions& o) {
  int64_t cells = 1;
  for (const int64_t extent : o.grid()) cells *= extent;
  at::Tensor out = empty_rows(o, cells);
  for (int64_t block = 0; block < o.axes(); ++block) {
    const int64_t axis = o.channel_axes().empty() ? block : o.channel_axes()[block];
    const int64_t extent = o.grid()[axis];
    // Each value of the axis once, then spread over the grid.
    at::Tensor line = at::empty({extent, out.size(1)}, out.options());
    fill_axis(o, block, cell_values(o, extent), cells, line);
    int64_t inner = 1;
    for (int64_t a = axis + 1; a < o.axes(); ++a) inner *= o.grid()[a];
    const at::Tensor spread = out.view({cells / (extent * inner), extent, inner, out.size(1)});
    for (const bool cosine : {false, true}) {
      const Columns c = columns(o, block, cosine);
      const int64_t end = c.first + (c.count - 1) * c.step + 1;
      spread.slice(3, c.first, end, c.step).copy_(c.of(line).unsqueeze(1).unsqueeze(0));
    }
  }
  return cropped(o, out);
}

void finish(const SinusoidOptions& o, at::Tensor& table) {
  const double dim = static_cast<double>(o.dim());
  switch (o.post()) {
    case Post::None: return;
    case Post::DivideBySqrtDim: table.div_(std::sqrt(dim)); return;
    case Post::MultiplyByRsqrtDim:
      table.mul_(at::ones({1}, table.options()) * std::pow(dim, -0.5));
      return;
    case Post::Standardize:
      as_one_thread([&] {  // the reductions' order decides last bits
        table.sub_(table.mean());
        table.div_(table.std() * 10);
      });
      return;
  }
}

}  // namespace posenc
