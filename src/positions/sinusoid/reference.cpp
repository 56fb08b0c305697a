#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/torch_internals/parallel_for.h"
#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/frequency.h"
#include "positions/sinusoid/rows.h"

namespace posenc {
namespace {

constexpr int64_t kBlock = 16384;  // elements of a block of angles, which stays in cache

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

at::ScalarType row_type(const SinusoidOptions& o) {
  return o.arithmetic() == sinusoid::Arithmetic::Float64 ? at::kDouble : at::kFloat;
}

at::Tensor angle_of(const SinusoidOptions& o, const at::Tensor& position, const at::Tensor& f,
                    int64_t length) {
  at::Tensor angle = o.phase() == sinusoid::Phase::Product ? position * f : position / f;
  if (o.angle_by_length()) {
    angle = angle * (static_cast<double>(o.dim()) / static_cast<double>(length));
  }
  if (o.angle_scale() != 1.0) angle = angle * o.angle_scale();
  return o.arithmetic() == sinusoid::Arithmetic::Float64Angle ? angle.to(at::kFloat) : angle;
}

// Writes sin and cos of one axis's positions (N) to their columns of out (N, width).
void fill_axis(const SinusoidOptions& o, int64_t axis, const at::Tensor& positions, int64_t length,
               at::Tensor& out) {
  warm_up_vector_math();
  const Frequencies f = frequencies(o, o.axis_widths()[axis], positions.size(0));
  const bool shared = f.sin.is_same(f.cos);
  const at::Tensor p = positions.to(f.sin.scalar_type()).unsqueeze(1);
  const int64_t block = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, f.sin.size(-1)));
  const auto part = [](const at::Tensor& t, int64_t begin, int64_t end) {
    return t.dim() == 2 ? t.slice(0, begin, end) : t;
  };
  const Columns sines = columns(o, axis, false), cosines = columns(o, axis, true);
  torch_internals::parallel_for(0, ceil_div(p.size(0), block), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i * block, end = std::min(begin + block, p.size(0));
      const at::Tensor rows = out.slice(0, begin, end), here = p.slice(0, begin, end);
      at::Tensor sin = sines.of(rows), cos = cosines.of(rows);
      const at::Tensor angle = angle_of(o, here, part(f.sin, begin, end), length);
      at::sin_out(sin, angle);
      at::cos_out(cos, shared ? angle.slice(1, 0, cos.size(1))
                              : angle_of(o, here, part(f.cos, begin, end), length));
    }
  });
}

at::Tensor cell_values(const SinusoidOptions& o, int64_t extent) {
  const at::Tensor v = at::arange(extent, at::TensorOptions(at::kFloat));
  switch (o.axis_values()) {
    case sinusoid::AxisValues::Plain: return v;
    case sinusoid::AxisValues::Scaled:
      return v / (static_cast<double>(extent) / o.base_size()) / o.interpolation_scale();
    case sinusoid::AxisValues::OneBased: return v + 1;
    case sinusoid::AxisValues::Normalized:
      return (v + 1) / ((v + 1).slice(0, -1) + 1e-6) * (2 * std::numbers::pi);
    case sinusoid::AxisValues::Centered:
      return (v + 1 - 0.5) / ((v + 1).slice(0, -1) + 1e-6) * (2 * std::numbers::pi);
  }
  return v;
}

}  // namespace

at::Tensor reference_rows(const SinusoidOptions& o, const at::Tensor& positions, int64_t length) {
  at::Tensor out = empty_rows(o, positions.size(0), row_type(o));
  if (o.coordinates().empty()) {
    if (o.raw_first()) out.select(1, 0).copy_(positions);
    fill_axis(o, 0, positions, length, out);
    return cropped(o, out);
  }
  for (int64_t axis = 0; axis < o.axes(); ++axis) {
    const sinusoid::Coordinate& c = o.coordinates()[axis];
    const at::Tensor p = c.complement ? 1 - positions : positions;
    const at::Tensor value = c.factor == 1.0 ? p : p * c.factor;
    if (o.raw_first()) out.select(1, axis).copy_(value);
    fill_axis(o, axis, value, length, out);
  }
  return cropped(o, out);
}

at::Tensor reference_grid(const SinusoidOptions& o) {
  at::Tensor out = empty_rows(o, cells(o), row_type(o));
  for (int64_t block = 0; block < o.axes(); ++block) {
    // Compute each value of the axis once, then spread it over the grid.
    const int64_t extent = o.grid()[grid_axis(o, block)];
    at::Tensor line = at::empty({extent, out.size(1)}, out.options());
    fill_axis(o, block, cell_values(o, extent), cells(o), line);
    spread(o, block, line, out);
  }
  return cropped(o, out);
}

void finish(const SinusoidOptions& o, at::Tensor& table) {
  const double dim = static_cast<double>(o.dim());
  switch (o.post()) {
    case sinusoid::Post::None: return;
    case sinusoid::Post::DivideBySqrtDim: table.div_(std::sqrt(dim)); return;
    case sinusoid::Post::MultiplyByRsqrtDim:
      table.mul_(at::ones({1}, table.options()) * std::pow(dim, -0.5));
      return;
    case sinusoid::Post::Standardize:
      run_single_threaded([&] {  // the last bits depend on the order of the reductions
        table.sub_(table.mean());
        table.div_(table.std() * 10);
      });
      return;
  }
}

}  // namespace posenc
