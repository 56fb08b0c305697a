#include "positions/sinusoid/rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <cmath>

#include "positions/sinusoid/columns.h"

namespace posenc {

std::optional<RowSequence> row_sequence(const SinusoidOptions& o, int64_t length) {
  switch (o.position_range()) {
    case sinusoid::PositionRange::Down: return RowSequence{length - 1, -1, length};
    case sinusoid::PositionRange::DownFromLength: return RowSequence{length, -1, length + 1};
    case sinusoid::PositionRange::Relative: return RowSequence{length - 1, -1, 2 * length - 1};
    case sinusoid::PositionRange::RelativeEven: return RowSequence{length, -1, 2 * length};
    case sinusoid::PositionRange::RelativeDistance: return std::nullopt;
    case sinusoid::PositionRange::Up: break;
  }
  if (o.start() != std::trunc(o.start()) || o.step() != std::trunc(o.step())) return std::nullopt;
  return RowSequence{static_cast<int64_t>(o.start()), static_cast<int64_t>(o.step()), length};
}

at::Tensor row_positions(const SinusoidOptions& o, int64_t length, const at::Tensor& index) {
  if (o.position_range() == sinusoid::PositionRange::RelativeDistance)
    return (length - 1 - index).abs();
  if (const auto rows = row_sequence(o, length)) {
    return rows->start == 0 && rows->step == 1 ? index : index * rows->step + rows->start;
  }
  return index.to(at::kFloat) * o.step() + o.start();
}

at::Tensor row_positions(const SinusoidOptions& o, int64_t length) {
  const auto rows = row_sequence(o, length);
  const int64_t count = rows ? rows->count
                        : o.position_range() == sinusoid::PositionRange::RelativeDistance
                            ? 2 * length - 1
                            : length;
  return row_positions(o, length, at::arange(count, at::TensorOptions(at::kLong)));
}

int64_t nominal_length(const SinusoidOptions& o, int64_t rows) {
  if (!o.grid().empty()) return o.row_count(cells(o)) == rows ? cells(o) : 0;
  for (const int64_t length : {rows, rows - 1, rows / 2, (rows + 1) / 2}) {
    if (length > 0 && o.row_count(length) == rows) return length;
  }
  return 0;
}

}  // namespace posenc
