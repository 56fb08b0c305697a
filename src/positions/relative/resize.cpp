#include "posenc/positions/relative/resize.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_linear1d.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <vector>

#include "positions/relative/grid_rules.h"
#include "positions/relative/limits.h"

namespace posenc {
namespace {

using relative::Grid;

constexpr bool kAlignCorners = false;

// The differences of rows, or columns, of a window.
Grid differences_of(Grid window) { return {2 * window.height - 1, 2 * window.width - 1}; }

void check_relative_table(const at::Tensor& table) {
  TORCH_CHECK_TYPE(table.is_floating_point(),
                   "[resize_relative_table] the table must be floating-point. Got ",
                   table.scalar_type());
  TORCH_CHECK_VALUE(table.dim() == 2 && table.size(0) > 0,
                    "[resize_relative_table] the table must be (rows, D). Got ", table.sizes());
}

// Height and width are exchanged in the first reshape, as BEiT has it: this is the identity only
// for a square.
at::Tensor bilinear_transposed(const at::Tensor& table, Grid from, Grid to) {
  const at::Tensor image = table.reshape({1, from.width, from.height, -1}).permute({0, 3, 1, 2});
  return at::upsample_bilinear2d(image, at::IntArrayRef({to.height, to.width}), kAlignCorners)
      .permute({0, 2, 3, 1})
      .reshape({to.height * to.width, -1});
}

// One axis of timm's grid: the positions of the old rows, whose distances grow by a factor so that
// they reach as far as the new ones, and for each new row its neighbours and its distances from
// them.
struct Neighbours {
  at::Tensor left, right;            // indices of old rows, int64
  at::Tensor from_left, from_right;  // distances, float32
};

std::vector<double> geometric_positions(int64_t from, int64_t to) {
  const int64_t side = from / 2;
  double low = 1.01, high = 1.5, ratio = 0;
  while (high - low > 1e-6) {
    ratio = (low + high) / 2.0;
    const double reached = (1.0 - std::pow(ratio, static_cast<double>(side))) / (1.0 - ratio);
    (reached > static_cast<double>(to / 2) ? high : low) = ratio;
  }
  std::vector<double> positions(static_cast<std::size_t>(2 * side + 1), 0.0);
  double position = 1;
  for (int64_t i = 0; i < side; ++i) {
    positions[static_cast<std::size_t>(side + 1 + i)] = position;
    positions[static_cast<std::size_t>(side - 1 - i)] = -position;
    position += std::pow(ratio, static_cast<double>(i + 1));
  }
  return positions;
}

Neighbours neighbours_of(int64_t from, int64_t to) {
  const at::Tensor old = at::tensor(geometric_positions(from, to), at::kDouble).to(at::kFloat);
  const double half = std::floor(static_cast<double>(to) / 2.0);
  const at::Tensor now = at::arange(-half, half + 0.1, 1.0, at::kFloat);
  Neighbours found;
  found.right = at::bucketize(now, old).clamp_max(from - 1);
  found.left = (found.right - 1).clamp(0, from - 1);
  found.from_left = (now - old.index_select(0, found.left)).clamp_min(0);
  found.from_right = (old.index_select(0, found.right) - now).clamp_min(0);
  const at::Tensor on_both = (found.from_left == 0).logical_and(found.from_right == 0);
  found.from_left.masked_fill_(on_both, 1.0);
  found.from_right.masked_fill_(on_both, 1.0);
  return found;
}

at::Tensor geometric_linear(const at::Tensor& table, Grid from, Grid to) {
  if (from.height == to.height && from.width == to.width) return table;
  const at::Tensor old = table.to(at::kFloat).reshape({from.height, from.width, -1});
  const Neighbours y = neighbours_of(from.height, to.height);
  const Neighbours x = neighbours_of(from.width, to.width);
  const auto along = [](const at::Tensor& down, const at::Tensor& across) {
    return (down.unsqueeze(1) * across.unsqueeze(0)).unsqueeze(-1);
  };
  const auto corner = [&](const at::Tensor& row, const at::Tensor& column, const at::Tensor& down,
                          const at::Tensor& across) {
    return old.index_select(0, row).index_select(1, column) * along(down, across);
  };
  // The weight of a corner is the distance from the opposite one.
  at::Tensor sum = corner(y.left, x.left, y.from_right, x.from_right);
  sum = sum + corner(y.left, x.right, y.from_right, x.from_left);
  sum = sum + corner(y.right, x.left, y.from_left, x.from_right);
  sum = sum + corner(y.right, x.right, y.from_left, x.from_left);
  const at::Tensor area = along(y.from_left + y.from_right, x.from_left + x.from_right);
  return (sum / area).reshape({to.height * to.width, -1}).to(table.scalar_type());
}

}  // namespace

at::Tensor resize_relative_table(const at::Tensor& table, Grid from, Grid to, relative::Resize rule,
                                 int64_t prefix) {
  check_relative_table(table);
  relative::check_grid("a window", from);
  relative::check_grid("a window", to);
  const Grid old = differences_of(from), now = differences_of(to);
  const int64_t rows = old.height * old.width;
  TORCH_CHECK_VALUE(prefix >= 0 && table.size(0) == rows + prefix,
                    "[resize_relative_table] the table must have ", rows + prefix,
                    " rows for a window of ", from.height, " x ", from.width, ". Got ",
                    table.sizes());
  const at::Tensor patches = table.slice(0, 0, rows);
  const at::Tensor resized = rule == relative::Resize::BilinearTransposed
                                 ? bilinear_transposed(patches, old, now)
                                 : geometric_linear(patches, old, now);
  return prefix > 0 ? at::cat({resized, table.slice(0, rows)}) : resized;
}

at::Tensor resize_relative_axis(const at::Tensor& table, int64_t length) {
  check_relative_table(table);
  TORCH_CHECK_VALUE(length > 0 && length <= relative::kMostPositions,
                    "[resize_relative_table] length must be positive, and at most ",
                    relative::kMostPositions, ". Got ", length);
  const at::Tensor line = table.reshape({1, table.size(0), -1}).transpose(1, 2);
  return at::upsample_linear1d(line, at::IntArrayRef({length}), kAlignCorners)
      .reshape({-1, length})
      .permute({1, 0});
}

}  // namespace posenc
