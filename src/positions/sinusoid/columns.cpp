#include "positions/sinusoid/columns.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/platform/memory.h"
namespace posenc {

at::Tensor Columns::of(const at::Tensor& rows) const {
  return rows.slice(-1, first, count == 0 ? first : first + (count - 1) * step + 1, step);
}

Columns columns(const SinusoidOptions& o, int64_t axis, bool cosine) {
  const auto widths = o.axis_widths();
  const int64_t axes = o.axes(), width = widths[axis];
  const int64_t sines = (width + 1) / 2, count = cosine ? width / 2 : sines;
  int64_t before = o.raw_first() ? axes : 0;
  const int64_t second = cosine != o.cos_first() ? 1 : 0;
  const bool halves = o.layout() == sinusoid::Layout::Halves;
  switch (o.axis_depth()) {
    case sinusoid::AxisDepth::Outer:
      before += std::accumulate(widths.begin(), widths.begin() + axis, int64_t{0});
      return halves ? Columns{before + second * sines, 1, count}
                    : Columns{before + second, 2, count};
    case sinusoid::AxisDepth::Middle:
      return halves ? Columns{before + second * axes * sines + axis * sines, 1, count}
                    : Columns{before + 2 * axis + second, 2 * axes, count};
    case sinusoid::AxisDepth::Inner:
      return halves ? Columns{before + second * axes * sines + axis, axes, count}
                    : Columns{before + second * axes + axis, 2 * axes, count};
  }
  return {};
}

int64_t row_width(const SinusoidOptions& o) {
  const auto widths = o.axis_widths();
  return std::accumulate(widths.begin(), widths.end(), o.raw_first() ? o.axes() : int64_t{0});
}

at::Tensor empty_rows(const SinusoidOptions& o, int64_t rows, at::ScalarType dtype) {
  const int64_t width = row_width(o);
  const int64_t padded =
      o.odd_dim() == sinusoid::OddDim::ZeroColumn ? std::max(width, o.dim()) : width;
  at::Tensor out = at::empty({rows, padded}, at::TensorOptions(dtype));
  if (platform::benefits_from_huge_pages(out.nbytes()))
    platform::advise_huge_pages(out.data_ptr(), out.nbytes());
  if (padded > width) out.slice(1, width).zero_();
  return out;
}

at::Tensor cropped(const SinusoidOptions& o, const at::Tensor& rows) {
  const bool crop = o.odd_dim() == sinusoid::OddDim::Truncate && rows.size(1) > o.dim();
  return crop ? rows.slice(1, 0, o.dim()).contiguous() : rows;
}

int64_t cells(const SinusoidOptions& o) {
  return std::accumulate(o.grid().begin(), o.grid().end(), int64_t{1}, std::multiplies<>());
}

int64_t grid_axis(const SinusoidOptions& o, int64_t block) {
  return o.channel_axes().empty() ? block : o.channel_axes()[block];
}

void spread(const SinusoidOptions& o, int64_t block, const at::Tensor& line, at::Tensor& out) {
  const auto& grid = o.grid();
  const int64_t axis = grid_axis(o, block), extent = grid[axis];
  const int64_t inner =
      std::accumulate(grid.begin() + axis + 1, grid.end(), int64_t{1}, std::multiplies<>());
  const at::Tensor all = out.view({-1, extent, inner, out.size(1)});
  for (const bool cosine : {false, true}) {
    const Columns c = columns(o, block, cosine);
    c.of(all).copy_(c.of(line).unsqueeze(1).unsqueeze(0));
  }
}

}  // namespace posenc
