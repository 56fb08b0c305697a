#include "posenc/positions/sinusoid/options.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/frequency.h"

namespace posenc {
namespace {

void check_frequencies(const SinusoidOptions& o) {
  TORCH_CHECK_VALUE(std::isfinite(o.base()) && o.base() > 0.0,
                    "[sinusoid] base must be positive and finite. Got ", o.base());
  TORCH_CHECK_VALUE(std::isfinite(o.min_period()) && o.min_period() > 0.0,
                    "[sinusoid] min_period must be positive and finite. Got ", o.min_period());
  for (const double value : {o.angle_scale(), o.start(), o.step(), o.shift(), o.max_frequency()}) {
    TORCH_CHECK_VALUE(std::isfinite(value),
                      "[sinusoid] angle_scale, start, step, shift and "
                      "max_frequency must be finite. Got ",
                      value);
  }
  for (const int64_t width : o.axis_widths()) {
    const bool has_divisor = !in_bands(o.frequency());
    TORCH_CHECK_VALUE(width > 0 && (!has_divisor || divisor_of(o, width) > 0.0), "[sinusoid] dim ",
                      o.dim(), " leaves ", width,
                      " channels an axis, and the "
                      "recipe then divides by ",
                      width > 0 ? divisor_of(o, width) : 0.0,
                      ": the dimension must be larger. Got dim ", o.dim());
    const int64_t sines = (width + 1) / 2, cosines = width / 2;
    const FrequencyCounts found = frequency_counts(o, width);
    TORCH_CHECK_VALUE(
        found.sines == sines &&
            (found.shared ? found.cosines >= cosines : found.cosines == cosines),
        "[sinusoid] the index must give an axis as many frequencies as it has sines and cosines, ",
        sines, " and ", cosines, ". Got ", found.sines, " and ", found.cosines, " for dim ",
        o.dim());
  }
}

void check_columns(const SinusoidOptions& o) {
  const auto widths = o.axis_widths();
  for (const int64_t width : widths) {
    TORCH_CHECK_VALUE(
        width % 2 == 0 || (o.odd_dim() == sinusoid::OddDim::ExtraSin && !o.cos_first()),
        "[sinusoid] an odd number of channels an axis needs sinusoid::OddDim::ExtraSin with the "
        "sines first. Got ",
        width, " of dim ", o.dim());
    TORCH_CHECK_VALUE(o.axis_depth() == sinusoid::AxisDepth::Outer || widths.size() == 1 ||
                          (width % 2 == 0 && width == widths[0]),
                      "[sinusoid] axis_depth Middle and Inner need axes of one even width. Got ",
                      at::IntArrayRef(widths));
  }
  const int64_t taken = row_width(o);
  TORCH_CHECK_VALUE(
      o.odd_dim() != sinusoid::OddDim::Truncate || taken >= o.dim(),
      "[sinusoid] sinusoid::OddDim::Truncate keeps the first dim of all channels, of which there"
      " must be as many. Got ",
      taken, " for dim ", o.dim());
  TORCH_CHECK_VALUE(!o.raw_first() || o.grid().empty(),
                    "[sinusoid] raw_first is for positions and coordinates. Got a grid");
}

void check_grid(const SinusoidOptions& o) {
  int64_t cells = 1;
  for (const int64_t extent : o.grid()) {
    TORCH_CHECK_VALUE(extent > 0, "[sinusoid] every extent of a grid must be positive. Got ",
                      extent);
    TORCH_CHECK_VALUE(extent <= kPositionLimit / cells,
                      "[sinusoid] a grid must have at most 2^31 cells. Got ",
                      at::IntArrayRef(o.grid()));
    cells *= extent;
  }
  TORCH_CHECK_VALUE(o.grid().empty() || o.coordinates().empty(),
                    "[sinusoid] a grid and coordinates exclude each other. Got ", o.grid().size(),
                    " and ", o.coordinates().size(), " axes");
  std::vector<bool> seen(o.grid().size(), false);
  for (const int64_t axis : o.channel_axes()) {
    TORCH_CHECK_VALUE(axis >= 0 && axis < static_cast<int64_t>(seen.size()) && !seen[axis],
                      "[sinusoid] channel_axes must name each axis of the grid once. Got ", axis);
    seen[axis] = true;
  }
  TORCH_CHECK_VALUE(o.channel_axes().empty() || o.channel_axes().size() == o.grid().size(),
                    "[sinusoid] channel_axes must name each axis of the grid once. Got ",
                    o.channel_axes().size(), " of ", o.grid().size());
  TORCH_CHECK_VALUE(o.axis_channels() != sinusoid::AxisChannels::QuarterRest || o.axes() == 3,
                    "[sinusoid] sinusoid::AxisChannels::QuarterRest is for three axes. Got ",
                    o.axes());
}

}  // namespace

int64_t SinusoidOptions::axes() const {
  if (!grid_.empty()) return static_cast<int64_t>(grid_.size());
  return coordinates_.empty() ? 1 : static_cast<int64_t>(coordinates_.size());
}

std::vector<int64_t> SinusoidOptions::axis_widths() const {
  const int64_t count = axes();
  if (axis_channels_ == sinusoid::AxisChannels::QuarterRest)
    return {dim_ / 4, 3 * dim_ / 8, 3 * dim_ / 8};
  int64_t width = (dim_ - (raw_first_ ? count : 0)) / count;
  const bool even =
      axis_channels_ == sinusoid::AxisChannels::Equal && odd_dim_ == sinusoid::OddDim::Truncate;
  if (axis_channels_ == sinusoid::AxisChannels::CeilEven || even)
    width = (dim_ + 2 * count - 1) / (2 * count) * 2;
  if (axis_channels_ == sinusoid::AxisChannels::FloorEven) width = dim_ / (2 * count) * 2;
  if (odd_dim_ == sinusoid::OddDim::Widen) width += width % 2;
  if (odd_dim_ != sinusoid::OddDim::ExtraSin) width -= width % 2;
  return std::vector<int64_t>(count, width);
}

int64_t SinusoidOptions::channels() const {
  if (odd_dim_ == sinusoid::OddDim::Truncate) return dim_;
  const int64_t taken = row_width(*this);
  return odd_dim_ == sinusoid::OddDim::ZeroColumn ? std::max(taken, dim_) : taken;
}

int64_t SinusoidOptions::row_count(int64_t length) const {
  int64_t count = length;
  const auto range =
      grid_.empty() ? position_range_ : sinusoid::PositionRange::Up;  // a grid has one row per cell
  if (range == sinusoid::PositionRange::DownFromLength) count = length + 1;
  if (range == sinusoid::PositionRange::Relative ||
      range == sinusoid::PositionRange::RelativeDistance)
    count = 2 * length - 1;
  if (range == sinusoid::PositionRange::RelativeEven) count = 2 * length;
  const bool extra = odd_dim_ == sinusoid::OddDim::ExtraRow && dim_ % 2 == 1;
  return count + (extra ? 1 : 0) + (cls_row_ ? 1 : 0);
}

void SinusoidOptions::validate() const {
  const SinusoidOptions& o = *this;
  const int64_t dim = o.dim();
  TORCH_CHECK_VALUE(dim > 0, "[sinusoid] dim must be positive. Got ", dim);
  TORCH_CHECK_VALUE(dim > 1 || o.odd_dim() == sinusoid::OddDim::ExtraSin ||
                        o.odd_dim() == sinusoid::OddDim::Truncate,
                    "[sinusoid] dim must be at least 2. Got ", dim);
  if (o.odd_dim() == sinusoid::OddDim::Error) {
    const int64_t taken = row_width(o);
    const int64_t multiple =
        o.axis_channels() == sinusoid::AxisChannels::QuarterRest ? 16 : 2 * o.axes();
    TORCH_CHECK_VALUE(o.raw_first() ? taken == dim : dim % multiple == 0, "[sinusoid] dim must be ",
                      multiple == 2 ? c10::str("even, or .odd_dim(...) must say what the last "
                                               "channel holds")
                      : o.raw_first()
                          ? c10::str("the coordinates and ", multiple, " channels a band")
                          : c10::str("a multiple of ", multiple),
                      ". Got ", dim);
  }
  check_grid(o);
  check_columns(o);
  check_frequencies(o);
}

}  // namespace posenc
