#include "posenc/positions/sinusoid/factored_table.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "core/check.h"
#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/exact.h"
#include "positions/sinusoid/exact/table_writer.h"

namespace posenc {
namespace {

namespace kernel = exact;

constexpr int64_t kRowsGrain = 256;

}  // namespace

struct FactoredTable::State {
  State(const SinusoidOptions& o, int64_t range, at::ScalarType type)
      : options(o),
        dtype(type),
        frequencies(exact_frequencies(o, o.axis_widths()[0], false)),
        rows(frequencies, range, exact_format(type)) {}

  // Makes `count` rows at the positions `where`.
  at::Tensor fill(const kernel::Positions& where, int64_t count) const {
    at::Tensor out = empty_rows(options, count, dtype);
    kernel::Destination to;
    to.data = out.data_ptr();
    to.layout = exact_layout(options, 0, out.size(1));
    at::parallel_for(0, count, kRowsGrain,
                     [&](int64_t begin, int64_t end) { rows.write(where, begin, end, to); });
    return cropped(options, out);
  }

  SinusoidOptions options;
  at::ScalarType dtype;
  kernel::Frequencies frequencies;
  kernel::FactoredRows rows;
};

FactoredTable::FactoredTable(const SinusoidOptions& options, int64_t range, at::ScalarType dtype) {
  options.validate();
  check_exact(options);
  TORCH_CHECK_VALUE(options.axes() == 1 && !options.raw_first() &&
                        options.index() != sinusoid::Index::Doubled &&
                        options.index() != sinusoid::Index::PairedHalf,
                    "[FactoredTable] the sinusoid must have one axis and one frequency for each "
                    "sine and its cosine. Got ",
                    options.axes(), " axes");
  TORCH_CHECK_VALUE(range >= 1 && range <= kPositionLimit,
                    "[FactoredTable] range must lie in [1, 2^31]. Got ", range);
  state_ = std::make_shared<const State>(options, range, dtype);
}

at::Tensor FactoredTable::rows(const at::Tensor& positions) const {
  TORCH_CHECK_TYPE(at::isIntegralType(positions.scalar_type(), /*includeBool=*/false),
                   "[FactoredTable] positions must be integers. Got ", positions.scalar_type());
  at::NoGradGuard no_grad;
  const at::Tensor flat = positions.to(at::kCPU, at::kLong).reshape({-1}).contiguous();
  const int64_t* values = flat.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    TORCH_CHECK_INDEX(values[i] > -kPositionLimit && values[i] < kPositionLimit,
                      "[FactoredTable] every position must lie in (-2^31, 2^31). Got ", values[i],
                      " at flat index ", i);
  }
  kernel::Positions where;
  where.integers = values;
  auto shape = positions.sizes().vec();
  at::Tensor out = state_->fill(where, flat.numel());
  shape.push_back(out.size(1));
  return out.to(positions.device()).view(shape);
}

at::Tensor FactoredTable::rows(int64_t offset, int64_t length) const {
  TORCH_CHECK_VALUE(length >= 0 && offset > -kPositionLimit && offset <= kPositionLimit - length,
                    "[FactoredTable] positions must lie in (-2^31, 2^31). Got ", offset, " to ",
                    offset + length - 1);
  at::NoGradGuard no_grad;
  kernel::Positions where;
  where.start = offset;
  return state_->fill(where, length);
}

int64_t FactoredTable::bytes() const { return state_->rows.bytes(); }

const SinusoidOptions& FactoredTable::options() const { return state_->options; }

}  // namespace posenc
