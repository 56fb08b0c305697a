#include "catalogue/identify/candidate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <cmath>

#include "core/floating_point.h"
#include "posenc/positions/sinusoid/table.h"
#include "positions/sinusoid/rows.h"

namespace posenc::identification {
namespace {

constexpr int64_t kChunk = 8192;  // rows compared at a time

}  // namespace

double Distance::correlation() const {
  return left > 0 && right > 0 ? dot / std::sqrt(left * right) : 0.0;
}

void Distance::join(const Distance& other) {
  equal = equal && other.equal;
  max_abs = std::max(max_abs, other.max_abs);
  max_ulp = std::max(max_ulp, other.max_ulp);
  dot += other.dot, left += other.left, right += other.right;
}

Distance distance(const at::Tensor& a, const at::Tensor& b) {
  Distance result;
  const at::Tensor x = ordinals(bits_of(a)), y = ordinals(bits_of(b));
  result.max_ulp = (x - y).abs().max().item<int64_t>();
  const at::Tensor u = a.to(at::kDouble), v = b.to(at::kDouble);
  result.max_abs = (u - v).abs().max().item<double>();
  result.equal = result.max_ulp == 0 && at::equal(u.signbit(), v.signbit());
  result.dot = (u * v).sum().item<double>();
  result.left = u.square().sum().item<double>();
  result.right = v.square().sum().item<double>();
  return result;
}

bool needs_whole_table(const SinusoidOptions& o) {
  return !o.grid().empty() || o.angle_by_length() || o.post() == sinusoid::Post::Standardize ||
         (o.odd_dim() == sinusoid::OddDim::ExtraRow && o.dim() % 2 == 1);
}

at::Tensor rows_of(const Candidate& c, const at::Tensor& index, at::ScalarType dtype) {
  const at::TensorOptions type(dtype);
  if (needs_whole_table(c.options)) {
    return sinusoid_table(c.options, c.length, type).index_select(0, index);
  }
  const int64_t before = c.options.cls_row() ? 1 : 0;
  const at::Tensor positions = row_positions(c.options, c.length, index - before);
  const at::Tensor rows = sinusoid_rows(c.options, positions, type);
  return before ? rows.masked_fill(index.eq(0).unsqueeze(1), 0.0) : rows;
}

Distance full_distance(const Candidate& c, const TableView& view, bool only_equality) {
  const at::ScalarType type = view.rows.scalar_type();
  const int64_t count = view.rows.size(0);
  const bool whole =
      needs_whole_table(c.options) || c.options.power_shape() == sinusoid::PowerShape::Grid;
  const at::Tensor table =
      whole ? sinusoid_table(c.options, c.length, at::TensorOptions(type)) : at::Tensor();
  Distance result;
  result.equal = true;
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t end = std::min(begin + kChunk, count);
    const at::Tensor rows =
        whole ? table.slice(0, begin, end)
              : rows_of(c, at::arange(begin, end, at::TensorOptions(at::kLong)), type);
    const at::Tensor there = view.rows.slice(0, begin, end);
    if (only_equality) {
      result.equal = at::equal(bits_of(rows), bits_of(there));
      if (!result.equal) break;
    } else {
      result.join(distance(rows, there));
    }
  }
  return result;
}

}  // namespace posenc::identification
