#include "positions/rotary/planes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>

namespace posenc {
namespace {

using PlaneRows = std::vector<at::Tensor>;

at::Tensor every(const at::Tensor& t, int64_t first, int64_t step) {
  return t.slice(-1, first, t.size(-1), step);
}

at::Tensor twice(const at::Tensor& t) { return at::cat({t, t}, -1); }

// Takes section i of the last axis from plane i modulo the number of planes.
at::Tensor chunked(const PlaneRows& planes, int64_t width, const std::vector<int64_t>& sections) {
  PlaneRows parts;
  int64_t begin = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const int64_t end = begin + sections[i] * width;
    parts.push_back(planes[i % planes.size()].slice(-1, begin, end));
    begin = end;
  }
  return at::cat(parts, -1);
}

at::Tensor interleaved(const PlaneRows& planes, const std::vector<int64_t>& sections) {
  at::Tensor row = planes[0].clone();
  for (const size_t plane : {1, 2}) {
    const auto first = static_cast<int64_t>(plane);
    const int64_t end = sections[plane] * 3;
    row.slice(-1, first, end, 3).copy_(planes[plane].slice(-1, first, end, 3));
  }
  return row;
}

// Chunk 0 is height, from plane 1; chunk 1 width, from plane 2; chunk 2 time, from plane 0.
at::Tensor height_width(const PlaneRows& planes, const std::vector<int64_t>& sections) {
  const int64_t of_each = sections[0];
  const at::Tensor height = planes[1].slice(-1, 0, of_each);
  const at::Tensor width = planes[2].slice(-1, of_each, 2 * of_each);
  const at::Tensor time = planes[0].slice(-1, 2 * of_each);
  return at::cat({at::stack({height, width}, -1).flatten(-2), time}, -1);
}

PlaneRows in_order(const RotaryOptions& o, const PlaneRows& planes) {
  return o.last_plane_first() ? PlaneRows(planes.rbegin(), planes.rend()) : planes;
}

// Adds the pairs of angle 0 that axis_dims leaves.
at::Tensor with_rest(const RotaryOptions& o, const at::Tensor& row, double rest) {
  std::vector<int64_t> sizes = row.sizes().vec();
  sizes.back() = o.frequencies() - row.size(-1);
  if (sizes.back() == 0) return row;
  const at::Tensor more = at::full(sizes, rest, row.options());
  return o.rest_first() ? at::cat({more, row}, -1) : at::cat({row, more}, -1);
}

at::Tensor row_of(const RotaryOptions& o, const PlaneRows& planes, double rest) {
  switch (o.planes()) {
    case rotary::Planes::One: return planes[0];
    case rotary::Planes::Chunked: return chunked(planes, 1, o.sections());
    case rotary::Planes::Interleaved: return interleaved(planes, o.sections());
    case rotary::Planes::HeightWidth: return height_width(planes, o.sections());
    case rotary::Planes::RowColumn:
      return at::stack({every(planes[0], 0, 2), every(planes[1], 1, 2)}, -1).flatten(-2);
    case rotary::Planes::Axial: return with_rest(o, at::cat(in_order(o, planes), -1), rest);
    case rotary::Planes::AxialAlternating:
      return with_rest(o, at::stack(in_order(o, planes), -1).flatten(-2), rest);
    case rotary::Planes::AxialInterleaved:
      return interleaved({at::full_like(planes[0], rest), planes[0], planes[1]}, o.sections());
    case rotary::Planes::EvenOdd: return chunked(planes, 1, {o.dim() / 4, o.dim() / 4});
    case rotary::Planes::Doubled: break;
  }
  PlaneRows doubled;
  for (const at::Tensor& plane : planes) doubled.push_back(twice(plane));
  return chunked(doubled, 2, o.sections());
}

}  // namespace

bool takes_turns(const RotaryOptions& o) {
  return o.planes() == rotary::Planes::Axial || o.planes() == rotary::Planes::AxialAlternating;
}

at::Tensor combine_planes(const RotaryOptions& o, const PlaneRows& planes, double rest) {
  if (o.cos_layout() == rotary::CosLayout::HalvesPerAxis) {
    PlaneRows rows;
    for (const at::Tensor& plane : in_order(o, planes)) rows.push_back(twice(plane));
    return at::cat(rows, -1);
  }
  const at::Tensor row = row_of(o, planes, rest);
  if (o.planes() == rotary::Planes::Doubled) return row;
  switch (o.cos_layout()) {
    case rotary::CosLayout::Halves: return twice(row);
    case rotary::CosLayout::Pairs: return at::stack({row, row}, -1).flatten(-2);
    case rotary::CosLayout::HalvesPerAxis:
    case rotary::CosLayout::Single:
    case rotary::CosLayout::Complex: break;
  }
  return row;
}

}  // namespace posenc
