#include "sinusoid/rotary/planes.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

namespace posenc {
namespace {

at::Tensor every(const at::Tensor& t, int64_t first, int64_t step) {
  return t.slice(-1, first, t.size(-1), step);
}

// Section i of the last axis from plane i modulo the number of planes.
at::Tensor chunked(const at::Tensor& entries, int64_t width, const std::vector<int64_t>& sections) {
  std::vector<at::Tensor> parts;
  int64_t begin = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    const at::Tensor plane = entries.select(0, static_cast<int64_t>(i) % entries.size(0));
    parts.push_back(plane.slice(-1, begin, begin + sections[i] * width));
    begin += sections[i] * width;
  }
  return at::cat(parts, -1);
}

at::Tensor interleaved(const at::Tensor& entries, const std::vector<int64_t>& sections) {
  at::Tensor row = entries.select(0, 0).clone();
  for (const int64_t plane : {1, 2}) {
    const int64_t end = sections[static_cast<size_t>(plane)] * 3;
    row.slice(-1, plane, end, 3).copy_(entries.select(0, plane).slice(-1, plane, end, 3));
  }
  return row;
}

// Chunk 0 is height's, from plane 1, chunk 1 width's, from plane 2, chunk 2 time's, from plane 0.
at::Tensor height_width(const at::Tensor& entries, const std::vector<int64_t>& sections) {
  const int64_t of_each = sections[0];
  const at::Tensor height = entries.select(0, 1).slice(-1, 0, of_each);
  const at::Tensor width = entries.select(0, 2).slice(-1, of_each, 2 * of_each);
  const at::Tensor time = entries.select(0, 0).slice(-1, 2 * of_each);
  return at::cat({at::stack({height, width}, -1).flatten(-2), time}, -1);
}

at::Tensor row_of(const RotaryOptions& o, const at::Tensor& entries) {
  switch (o.planes()) {
    case rotary::Planes::One: return entries;
    case rotary::Planes::Chunked: return chunked(entries, 1, o.sections());
    case rotary::Planes::Interleaved: return interleaved(entries, o.sections());
    case rotary::Planes::HeightWidth: return height_width(entries, o.sections());
    case rotary::Planes::RowColumn:
      return at::stack({every(entries.select(0, 0), 0, 2), every(entries.select(0, 1), 1, 2)}, -1)
          .flatten(-2);
    case rotary::Planes::Axial: return at::cat(entries.unbind(0), -1);
    case rotary::Planes::AxialReversed: return at::cat(entries.flip(0).unbind(0), -1);
    case rotary::Planes::AxialAlternating:
      return at::stack(entries.flip(0).unbind(0), -1).flatten(-2);
    case rotary::Planes::EvenOdd: return chunked(entries, 1, {o.dim() / 4, o.dim() / 4});
    case rotary::Planes::Doubled: break;
  }
  return chunked(at::cat({entries, entries}, -1), 2, o.sections());
}

}  // namespace

at::Tensor combine_planes(const RotaryOptions& o, const at::Tensor& entries) {
  if (o.pairing() == rotary::Pairing::HalvesPerAxis) {
    return at::cat(at::cat({entries, entries}, -1).unbind(0), -1);
  }
  const at::Tensor row = row_of(o, entries);
  if (o.planes() == rotary::Planes::Doubled) return row;
  switch (o.cos_layout()) {
    case rotary::CosLayout::Halves: return at::cat({row, row}, -1);
    case rotary::CosLayout::Pairs: return at::stack({row, row}, -1).flatten(-2);
    case rotary::CosLayout::Single:
    case rotary::CosLayout::Complex: break;
  }
  return row;
}

}  // namespace posenc
