#include "posenc/nn/positional_encoding.h"

#include <ATen/ops/_unsafe_view.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <ostream>

#include "nn/computed_table.h"
#include "nn/print.h"
#include "posenc/core/check.h"
#include "posenc/functional/positional_encoding.h"
#include "posenc/sinusoid/positions.h"
#include "posenc/sinusoid/table.h"
#include "sinusoid/rows.h"

namespace posenc {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 31;  // beyond, float32 positions are too coarse

bool is_whole(double value) { return value == std::trunc(value); }

// (rows, D) to (1, rows, D). Not a view, because autograd checks more for views in each forward.
torch::Tensor as_batch(const torch::Tensor& table) {
  return at::_unsafe_view(table, {1, table.size(0), table.size(1)});
}

// Whether the row of a position does not depend on the length of the table.
bool has_rows_of_its_own(const SinusoidOptions& o) {
  return o.position_range() == sinusoid::PositionRange::Up && o.grid().empty() && !o.cls_row() &&
         !o.angle_by_length() && o.post() != sinusoid::Post::Standardize && o.row_count(1) == 1;
}

// Returns explicit positions as int64 on the CPU; throws where a table look-up would.
torch::Tensor checked(const torch::Tensor& position_ids) {
  TORCH_CHECK_TYPE(at::isIntegralType(position_ids.scalar_type(), /*includeBool=*/false),
                   "[PositionalEncoding] positions must be integers. Got ",
                   position_ids.scalar_type());
  const torch::Tensor here = position_ids.to(torch::kCPU, torch::kLong);
  const torch::Tensor outside = (here < 0).logical_or_(here >= kMaxRows);
  TORCH_CHECK_INDEX(!outside.any().item<bool>(),
                    "[PositionalEncoding] every position must lie in [0, 2^31). Got ",
                    here.masked_select(outside)[0].item<int64_t>());
  return here;
}

// Checks positions when there is no table; `sizes` are those of x or the ids, without the channels.
void check_positions(const PositionalEncodingOptions& options, torch::IntArrayRef sizes,
                     int64_t length, int64_t offset, const torch::Tensor& position_ids) {
  TORCH_CHECK_VALUE(sizes.size() == 1 || sizes.size() == 2,
                    "[PositionalEncoding] x must be (B, L, D) or (L, D). Got rows for ", sizes);
  if (position_ids.defined()) {
    functional::check_position_ids(sizes, functional::PositionalEncodingFuncOptions()
                                              .offset(offset)
                                              .position_ids(position_ids)
                                              .batch_first(options.batch_first()));
    return;
  }
  TORCH_CHECK_VALUE(offset >= 0, "[PositionalEncoding] offset must not be negative. Got ", offset);
  TORCH_CHECK_VALUE(offset <= kMaxRows - length,
                    "[PositionalEncoding] positions must be below 2^31. Got ", offset, " + ",
                    length);
}

}  // namespace

PositionalEncodingImpl::PositionalEncodingImpl(PositionalEncodingOptions options_)
    : options(std::move(options_)) {
  dtype_ = c10::get_default_dtype_as_scalartype();
  PositionalEncodingImpl::reset();
}

void PositionalEncodingImpl::reset() {
  check_positive("PositionalEncoding", "d_model", options.d_model());
  check_positive("PositionalEncoding", "max_len", options.max_len());
  check_dropout("PositionalEncoding", options.dropout());
  TORCH_CHECK_VALUE(options.sinusoid().dim() == options.d_model(),
                    "[PositionalEncoding] the sinusoid's dim must be d_model ", options.d_model(),
                    ". Got ", options.sinusoid().dim());
  TORCH_CHECK_VALUE((options.table_source() == TableSource::Buffer && !options.grow()) ||
                        has_rows_of_its_own(options.sinusoid()),
                    "[PositionalEncoding] a table must have a fixed length, TableSource::Buffer "
                    "without grow(true), "
                    "where its rows depend on the length. Got a sinusoid of that kind");
  switch (options.table_source()) {
    case TableSource::Buffer:
      pe = register_buffer("pe", as_batch(module_table(options.sinusoid(), options.max_len())));
      break;
    case TableSource::Factored:
      TORCH_CHECK_VALUE(
          is_whole(options.sinusoid().start()) && is_whole(options.sinusoid().step()) &&
              !options.sinusoid().zero_row(),
          "[PositionalEncoding] TableSource::Factored needs whole numbers as start and "
          "step, and no zero_row. Got another sinusoid");
      convert(dtype_);
      break;
    case TableSource::OnTheFly: options.sinusoid().validate(); break;
  }
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
}

void PositionalEncodingImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::PositionalEncoding(d_model=" << options.d_model() << ", ";
  print(stream, options);
  stream << ")";
}

std::vector<ComputedTable> PositionalEncodingImpl::computed_tables() const {
  if (!pe.defined()) return {};
  return {computed_table("pe", 1, pe, options.sinusoid(), options.max_len())};
}

void PositionalEncodingImpl::convert(torch::Dtype dtype) {
  if (pe.defined()) pe.set_data(convert_table(options.sinusoid(), pe, dtype));
  dtype_ = dtype;
  if (options.table_source() != TableSource::Factored) return;
  const int64_t range = std::min(options.max_len(), kMaxRows);
  factored_.emplace(options.sinusoid(), range, dtype);
  wide_factored_.reset();
  if (sums_in_float()) wide_factored_.emplace(options.sinusoid(), range);
}

bool PositionalEncodingImpl::sums_in_float() const {
  return options.sinusoid().precision() == Precision::Exact &&
         at::isReducedFloatingType(pe.defined() ? pe.scalar_type() : dtype_);
}

bool PositionalEncodingImpl::is_rounded_from(const torch::Tensor& wide) const {
  return wide.size(0) == pe.size(1) && wide.size(1) == pe.size(2) &&
         wide.to(pe.scalar_type()).equal(pe[0]);
}

const torch::Tensor& PositionalEncodingImpl::rows_to_add() {
  if (!pe.defined() || !pe.is_cpu() || !sums_in_float()) return pe;
  static std::mutex looking;  // held long only after a conversion, a load or growth
  const int64_t version = pe.is_inference() ? 0 : static_cast<int64_t>(pe._version());
  const std::lock_guard<std::mutex> lock(looking);
  if (pe.const_data_ptr() != known_data_ || version != known_version_) {
    const torch::NoGradGuard no_grad;
    if (!wide_.defined() || wide_.size(0) != pe.size(1))
      wide_ = sinusoid_table(options.sinusoid(), pe.size(1));
    known_rounded_ = is_rounded_from(wide_);
    known_data_ = pe.const_data_ptr();
    known_version_ = version;
  }
  return known_rounded_ ? wide_ : pe;
}

std::shared_lock<std::shared_mutex> PositionalEncodingImpl::hold(int64_t rows) {
  if (!options.grow()) return {};
  std::shared_lock<std::shared_mutex> reading(lock_);
  if (rows <= pe.size(1)) return reading;
  reading.unlock();
  grow_to(rows);
  reading.lock();
  return reading;
}

torch::Tensor PositionalEncodingImpl::computed_rows(torch::IntArrayRef sizes, int64_t length,
                                                    int64_t offset,
                                                    const torch::Tensor& position_ids) const {
  check_positions(options, sizes, length, offset, position_ids);
  const auto& table = wide_factored_ ? wide_factored_ : factored_;
  const torch::TensorOptions type(sums_in_float() ? torch::kFloat : dtype_);
  return rows_from(table, length, offset, position_ids, type);
}

torch::Tensor PositionalEncodingImpl::rows_from(const std::optional<FactoredTable>& table,
                                                int64_t length, int64_t offset,
                                                const torch::Tensor& position_ids,
                                                const torch::TensorOptions& type) const {
  const SinusoidOptions& o = options.sinusoid();
  if (table && !position_ids.defined() && o.start() == 0.0 && o.step() == 1.0)
    return table->rows(offset, length);
  const torch::Tensor values = row_positions(
      o, 0, position_ids.defined() ? checked(position_ids) : positions_from_offset(length, offset));
  return table ? table->rows(values)
               : module_rows(o, values, c10::typeMetaToScalarType(type.dtype()));
}

void PositionalEncodingImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  convert(dtype);
  torch::nn::Module::to(device, dtype, non_blocking);
}

void PositionalEncodingImpl::to(torch::Dtype dtype, bool non_blocking) {
  convert(dtype);
  torch::nn::Module::to(dtype, non_blocking);
}

torch::Tensor PositionalEncodingImpl::forward(const torch::Tensor& x, int64_t offset,
                                              const torch::Tensor& position_ids) {
  if (options.table_source() != TableSource::Buffer)
    return forward_without_table(x, offset, position_ids);
  const auto how = functional::PositionalEncodingFuncOptions()
                       .offset(offset)
                       .position_ids(position_ids)
                       .batch_first(options.batch_first());
  const auto add = [&](const torch::Tensor& rows) {
    return dropout->forward(functional::positional_encoding(x, rows, how));
  };
  if (!options.grow()) return add(pe);
  if (!position_ids.defined()) {
    const int64_t axis = x.dim() == 3 && options.batch_first() ? 1 : 0;
    const bool sensible = x.dim() > axis && offset >= 0 && offset < kMaxRows;
    return add(table(sensible ? offset + x.size(axis) : 1));  // if not, add() throws
  }
  try {
    return add(table(1));
  } catch (const c10::IndexError&) {
    const int64_t last = position_ids.max().item<int64_t>();
    if (last < table(1).size(1)) throw;  // a negative position
    return add(table(last + 1));
  }
}

torch::Tensor PositionalEncodingImpl::forward_without_table(const torch::Tensor& x, int64_t offset,
                                                            const torch::Tensor& position_ids) {
  TORCH_CHECK_VALUE(x.dim() == 2 || x.dim() == 3,
                    "[PositionalEncoding] x must be (B, L, D) or (L, D). Got ", x.sizes());
  const int64_t length = x.size(x.dim() == 3 && options.batch_first() ? 1 : 0);
  check_positions(options, x.sizes().slice(0, x.dim() - 1), length, offset, position_ids);
  const auto rows = rows_from(factored_, length, offset, position_ids, dtype_);
  return dropout->forward(
      functional::add_position_rows(x, rows.to(x.device()), options.batch_first()));
}

torch::Tensor PositionalEncodingImpl::table(int64_t rows) {
  TORCH_CHECK_VALUE(pe.defined(),
                    "[PositionalEncoding] there is a table with TableSource::Buffer only");
  {
    std::shared_lock<std::shared_mutex> reading(lock_);
    // detach(): a separate handle on the current rows, unaffected by growth in another thread
    if (!options.grow() || rows <= pe.size(1)) return pe.detach();
  }
  grow_to(rows);
  std::shared_lock<std::shared_mutex> reading(lock_);
  return pe.detach();
}

void PositionalEncodingImpl::grow_to(int64_t rows) {
  TORCH_CHECK_VALUE(rows <= kMaxRows, "[PositionalEncoding] positions must be below 2^31. Got ",
                    rows - 1);
  std::unique_lock<std::shared_mutex> writing(lock_);
  const int64_t present = pe.size(1);
  if (rows <= present) return;  // another thread was faster
  // The table stays an inference tensor, or a normal one, whatever the current mode is.
  const c10::InferenceMode as_made(pe.is_inference());
  const torch::NoGradGuard no_grad;
  const int64_t wanted = std::min(std::max(rows, 2 * present), kMaxRows);
  // Keep the present rows: they may come from a checkpoint.
  const auto more =
      module_table(options.sinusoid(), wanted, pe.options()).slice(0, present).unsqueeze(0);
  pe.set_data(torch::cat({pe, more}, 1));
}

}  // namespace posenc
