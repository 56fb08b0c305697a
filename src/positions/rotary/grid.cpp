// The positions of a grid's patches, by the operations of the mirrored systems.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/meshgrid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "posenc/positions/rotary/rotary.h"

namespace posenc {
namespace {

using rotary::Coordinates;

bool needs_reference(Coordinates coordinates) {
  return coordinates == Coordinates::Resized || coordinates == Coordinates::Scaled ||
         coordinates == Coordinates::Floored;
}

void check_sizes(const RotaryOptions& o, at::IntArrayRef sizes) {
  TORCH_CHECK_VALUE(static_cast<int64_t>(sizes.size()) == o.plane_count(),
                    "[rotary] a grid must have a size for each of the ", o.plane_count(),
                    " planes. Got ", sizes);
  for (const int64_t size : sizes)
    TORCH_CHECK_VALUE(size > 0, "[rotary] the sizes of a grid must be positive. Got ", sizes);
  TORCH_CHECK_VALUE(
      !needs_reference(o.grid().coordinates) || o.grid().reference.size() == sizes.size(),
      "[rotary] grid.reference must have a number for each axis of ", sizes, ". Got ",
      at::IntArrayRef(o.grid().reference));
}

void check_merge(const rotary::Grid& grid, at::IntArrayRef sizes) {
  TORCH_CHECK_VALUE(grid.merge != 0,
                    "[rotary] grid.merge must be set: the model's processor has one for each image "
                    "(Video-LLaMA 3: 1 for an image, 2 for a video). Got 0");
  if (grid.merge == 1) return;
  TORCH_CHECK_VALUE(
      sizes.size() >= 2 && sizes.end()[-1] % grid.merge == 0 && sizes.end()[-2] % grid.merge == 0,
      "[rotary] height and width of a grid must be multiples of grid.merge = ", grid.merge,
      ". Got ", sizes);
}

// (..., height, width, axes) -> (N, axes), in blocks of merge by merge.
at::Tensor in_blocks(const at::Tensor& patches, int64_t merge) {
  if (merge == 1) return patches.flatten(0, -2);
  return patches
      .unflatten(-2, {-1, merge})  // (..., height, columns, merge, axes)
      .unflatten(-4, {-1, merge})  // (..., rows, merge, columns, merge, axes)
      .transpose(-4, -3)
      .flatten(0, -2);
}

// The coordinates of an axis of `size` patches.
at::Tensor along(const rotary::Grid& grid, int64_t size, int64_t reference, int64_t last_size) {
  const at::TensorOptions integers(at::kLong), real(at::kFloat);
  const at::Tensor index = at::arange(size, integers);
  const auto moved = [&](const at::Tensor& t) { return grid.offset == 0.0 ? t : t + grid.offset; };
  switch (grid.coordinates) {
    case Coordinates::Index: return moved(index);
    case Coordinates::OneBased: return moved(index + 1);
    case Coordinates::Centered: return moved(index - (size - size / 2));
    case Coordinates::Midpoints:
      return moved(at::arange(0.5, size, real)).div_(size).mul_(2.0).sub_(1.0);
    case Coordinates::Interval: return at::linspace(-1.0, 1.0, size, real);
    case Coordinates::Resized: return moved(index.to(at::kFloat)) / size * reference;
    case Coordinates::Scaled:
      return moved(index) * (static_cast<double>(reference) / static_cast<double>(last_size));
    case Coordinates::Floored: break;
  }
  return (index * reference).div(size, "floor");
}

}  // namespace

at::Tensor rotary_grid(const RotaryOptions& options, at::IntArrayRef sizes) {
  options.validate();
  check_sizes(options, sizes);
  const rotary::Grid& grid = options.grid();
  check_merge(grid, sizes);
  rotary::Grid time = grid;  // an axis before height and width
  time.coordinates = Coordinates::Index;
  std::vector<at::Tensor> axes;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t reference = grid.reference.empty() ? 0 : grid.reference[axis];
    const bool spatial = axis + 2 >= sizes.size();
    axes.push_back(along(spatial ? grid : time, sizes[axis], reference, sizes.back()));
  }
  axes = at::meshgrid(axes, "ij");
  if (grid.width_first) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  const at::Tensor patches = in_blocks(at::stack(axes, -1), grid.merge);
  const at::Tensor rest = at::zeros({grid.zero_tokens, patches.size(-1)}, patches.options());
  return grid.zero_tokens == 0 ? patches : at::cat({patches, rest});
}

}  // namespace posenc
