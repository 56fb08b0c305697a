#include "positions/functional/resize_positions/interpolate.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "positions/functional/resize_positions/rules.h"

namespace posenc::functional {
namespace {

using Scales = std::array<double, 2>;

// torch.nn.functional.interpolate to a size, or by factors. The filters then use these factors;
// otherwise they divide the sizes.
at::Tensor resample(const at::Tensor& grid, const ResizeRule& rule, PatchGrid to,
                    const std::optional<Scales>& scales = std::nullopt) {
  const std::array<int64_t, 2> sides = {to.height, to.width};
  at::OptionalIntArrayRef size;
  std::optional<at::ArrayRef<double>> factors;
  if (scales) {
    factors = *scales;
  } else {
    size = sides;
  }
  constexpr bool kAlignCorners = false;
  switch (rule.filter) {
    case ResizeFilter::Nearest: return at::upsample_nearest2d(grid, size, factors);
    case ResizeFilter::Bilinear:
      return rule.antialias ? at::_upsample_bilinear2d_aa(grid, size, kAlignCorners, factors)
                            : at::upsample_bilinear2d(grid, size, kAlignCorners, factors);
    case ResizeFilter::Bicubic: break;
  }
  return rule.antialias ? at::_upsample_bicubic2d_aa(grid, size, kAlignCorners, factors)
                        : at::upsample_bicubic2d(grid, size, kAlignCorners, factors);
}

PatchGrid sides_of(const at::Tensor& grid) { return {grid.size(2), grid.size(3)}; }

// The first rows and columns of a grid (1, D, H, W), at most as many as in `most`.
at::Tensor crop(const at::Tensor& grid, PatchGrid most) {
  return grid.slice(2, 0, most.height).slice(3, 0, most.width);
}

at::Tensor grow(const char* module, const at::Tensor& grid, const ResizeRule& rule, PatchGrid to) {
  const PatchGrid from = sides_of(grid);
  const auto factor = [](int64_t requested, int64_t had) {
    return requested > had ? static_cast<double>(requested) / static_cast<double>(had) : 1.0;
  };
  const Scales scales = {factor(to.height, from.height), factor(to.width, from.width)};
  const at::Tensor part = crop(grid, to);
  if (scales == Scales{1.0, 1.0}) return part;
  const at::Tensor grown = resample(part, rule, to, scales);
  TORCH_CHECK_VALUE(sides_of(grown) == to, "[", module, "] the factors ", scales[0], " and ",
                    scales[1], " must give ", to.height, "x", to.width, " patches. Got ",
                    grown.size(2), "x", grown.size(3));
  return grown;
}

at::Tensor by_offset(const at::Tensor& grid, const ResizeRule& rule, PatchGrid to) {
  constexpr double kOffset = 0.1;  // "to avoid floating point error", according to DINO's code
  const PatchGrid from = sides_of(grid);
  const Scales scales = {(static_cast<double>(to.height) + kOffset) / from.height,
                         (static_cast<double>(to.width) + kOffset) / from.width};
  return resample(grid, rule, to, scales);
}

// Resizes to a square with the length of the longer side, then crops.
at::Tensor by_square(const at::Tensor& grid, const ResizeRule& rule, PatchGrid to) {
  const int64_t side = std::max(to.height, to.width);
  return crop(resample(grid, rule, {side, side}), to);
}

at::Tensor resized(const char* module, const at::Tensor& grid, const ResizeRule& rule,
                   PatchGrid to) {
  switch (rule.sizing) {
    case ResizeSizing::Grow: return grow(module, grid, rule, to);
    case ResizeSizing::Offset: return by_offset(grid, rule, to);
    case ResizeSizing::Square: return by_square(grid, rule, to);
    case ResizeSizing::Size: break;
  }
  return resample(grid, rule, to);
}

}  // namespace

PatchGrid square_grid(int64_t patches) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(patches)));
  return {side, side};
}

bool knows_old_grid(PositionResize rule) { return resize_rule(rule).kept == ResizeKept::EqualGrid; }

bool keeps_positions(PositionResize rule, int64_t patches, PatchGrid from, PatchGrid to,
                     bool square_image) {
  switch (resize_rule(rule).kept) {
    case ResizeKept::SquareImage: return to.patches() == patches && square_image;
    case ResizeKept::EqualGrid: return to == from && to.patches() == patches;
    case ResizeKept::EqualCount: return to.patches() == patches;
    case ResizeKept::Never: break;
  }
  return false;
}

at::Tensor interpolate_positions(const char* module, const at::Tensor& table, PositionResize rule,
                                 int64_t prefix, PatchGrid from, PatchGrid to) {
  const int64_t patches = table.size(1) - prefix;
  TORCH_CHECK_VALUE(from.patches() == patches, "[", module, "] the table must have ", from.height,
                    "x", from.width, " positions for patches, the grid that it is resized from. ",
                    "Got ", patches);
  TORCH_CHECK_VALUE(rule != PositionResize::Refuse, "[", module, "] the positions are those of ",
                    from.height, "x", from.width,
                    " patches, and PositionResize::Refuse leaves them so. Got ", to.height, "x",
                    to.width);
  const ResizeRule& arithmetic = resize_rule(rule);
  const int64_t width = table.size(2);
  at::Tensor grid = table.slice(1, prefix)
                        .reshape({1, from.height, from.width, width})
                        .permute({0, 3, 1, 2});  // (1, D, H, W), a view
  if (arithmetic.in_float32) grid = grid.to(at::kFloat);
  grid = resized(module, grid, arithmetic, to).to(table.scalar_type());
  const at::Tensor rows = grid.permute({0, 2, 3, 1}).reshape({1, -1, width});
  return prefix == 0 ? rows : at::cat({table.slice(1, 0, prefix), rows}, 1);
}

}  // namespace posenc::functional
