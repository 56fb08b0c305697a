#include "posenc/positions/nn/positional_encoding.h"

#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <ostream>

#include "core/check.h"
#include "core/opaque_definitions.h"
#include "core/print_fields.h"
#include "core/tensors.h"
#include "core/torch_internals/shortcut.h"
#include "core/torch_internals/version.h"
#include "core/uncopied.h"
#include "posenc/positions/functional/positional_encoding.h"
#include "posenc/positions/sinusoid/factored_table.h"
#include "posenc/positions/sinusoid/positions.h"
#include "posenc/positions/sinusoid/table.h"
#include "positions/functional/lookup.h"
#include "positions/nn/computed_table.h"
#include "positions/nn/embed_module.h"
#include "positions/nn/positional_encoding_internals.h"
#include "positions/sinusoid/rows.h"

namespace posenc {

struct PositionalEncodingState {
  GrowthLock lock;
  torch::Dtype dtype = c10::get_default_dtype_as_scalartype();  // of the rows without a table
  std::optional<FactoredTable> factored;
  // For half types with Precision::Exact: the float32 rows, and the state of `pe` for which it is
  // known whether `pe` holds them rounded.
  torch::Tensor wide;
  std::optional<FactoredTable> wide_factored;
  const void* known_data = nullptr;
  int64_t known_version = -1;
  torch::Tensor known_values;  // of an inference tensor, whose writes autograd does not count
  bool known_rounded = false;
};

template class detail::Opaque<PositionalEncodingState>;

namespace {

bool is_integer(double value) { return value == std::trunc(value); }

// (rows, D) to (1, rows, D).
torch::Tensor as_batch(const torch::Tensor& table) {
  return torch_internals::reshaped_owner(table, {1, table.size(0), table.size(1)});
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
  const torch::Tensor outside = (here < 0).logical_or_(here >= kPositionLimit);
  TORCH_CHECK_INDEX(!outside.any().item<bool>(),
                    "[PositionalEncoding] every position must lie in [0, 2^31). Got ",
                    here.masked_select(outside)[0].item<int64_t>());
  return here;
}

// Checks positions when there is no table.
void check_positions(const PositionalEncodingOptions& options, const PositionRequest& request) {
  TORCH_CHECK_VALUE(request.sizes.size() == 1 || request.sizes.size() == 2,
                    "[PositionalEncoding] x must be (B, L, D) or (L, D). Got rows for ",
                    request.sizes);
  const int64_t offset = request.offset;
  if (request.position_ids.defined()) {
    functional::check_position_ids(request.sizes, functional::PositionalEncodingFuncOptions()
                                                      .offset(offset)
                                                      .position_ids(request.position_ids)
                                                      .batch_first(options.batch_first()));
    return;
  }
  TORCH_CHECK_VALUE(offset >= 0, "[PositionalEncoding] offset must not be negative. Got ", offset);
  TORCH_CHECK_VALUE(offset <= kPositionLimit - request.length,
                    "[PositionalEncoding] positions must be below 2^31. Got ", offset, " + ",
                    request.length);
}

// The rows that a table needs which may grow; 0 if a look-up will report what is wrong. Positions
// on a GPU are not read, which would wait for it.
int64_t rows_needed(const PositionRequest& request) {
  const torch::Tensor& given = request.position_ids;
  if (!given.defined()) {
    const bool sensible = request.offset >= 0 && request.offset < kPositionLimit;
    return sensible ? request.offset + request.length : 0;
  }
  if (request.offset != 0 || !torch_internals::is_plain(given) || given.numel() == 0 ||
      !at::isIntegralType(given.scalar_type(), /*includeBool=*/false))
    return 0;
  return std::min(given.max().item<int64_t>(), std::numeric_limits<int64_t>::max() - 1) + 1;
}

// Whether rows of `dtype` come from float32 rows that are kept for sums.
bool sums_in_float(const PositionalEncodingOptions& options, torch::Dtype dtype) {
  return options.sinusoid().precision() == Precision::Exact && at::isReducedFloatingType(dtype);
}

// Whether each element of `pe` is that of the recipe: rounded once, as the module makes its table,
// or from the float32 rows, as files may hold it. The two differ in one of some 10^5 elements.
bool is_rounded_from(const torch::Tensor& pe, const torch::Tensor& wide, const SinusoidOptions& o) {
  if (wide.size(0) != pe.size(1) || wide.size(1) != pe.size(2)) return false;
  const torch::Tensor twice = wide.to(pe.scalar_type());
  if (twice.equal(pe[0])) return true;
  const torch::Tensor once = sinusoid_table(o, pe.size(1), pe.scalar_type());
  return pe[0].eq(once).logical_or_(pe[0].eq(twice)).all().item<bool>();
}

bool is_known(const PositionalEncodingState& state, const torch::Tensor& pe) {
  if (pe.const_data_ptr() != state.known_data) return false;
  if (pe.is_inference()) return state.known_values.defined() && state.known_values.equal(pe);
  return torch_internals::version_of(pe) == state.known_version;
}

// The rows of these positions, from `table` or else from the recipe.
torch::Tensor rows_from(const std::optional<FactoredTable>& table, const SinusoidOptions& o,
                        const PositionRequest& request, torch::Dtype dtype) {
  const torch::Tensor& given = request.position_ids;
  if (table && !given.defined() && o.start() == 0.0 && o.step() == 1.0)
    return table->rows(request.offset, request.length);
  const torch::Tensor values = row_positions(
      o, 0,
      given.defined() ? checked(given) : positions_from_offset(request.length, request.offset));
  return table ? table->rows(values) : module_rows(o, values, dtype);
}

}  // namespace

PositionalEncodingImpl::PositionalEncodingImpl(PositionalEncodingOptions options_)
    : options(std::move(options_)) {
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
      TORCH_CHECK_VALUE(is_integer(options.sinusoid().start()) &&
                            is_integer(options.sinusoid().step()) && !options.sinusoid().zero_row(),
                        "[PositionalEncoding] TableSource::Factored needs integers as start and "
                        "step, and no zero_row");
      convert(state_->dtype);
      break;
    case TableSource::OnTheFly: options.sinusoid().validate(); break;
  }
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
}

void PositionalEncodingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "PositionalEncoding", options, PositionalEncodingOptions(-1, -1));
}

TableRecipe PositionalEncodingImpl::table_recipe() const {
  return {"pe", 1, pe, options.sinusoid(), options.max_len()};
}

void PositionalEncodingImpl::convert(torch::Dtype dtype) {
  TableModule::convert(dtype);
  state_->dtype = dtype;
  if (options.table_source() != TableSource::Factored) return;
  const int64_t range = std::min(options.max_len(), kPositionLimit);
  state_->factored.emplace(options.sinusoid(), range, dtype);
  state_->wide_factored.reset();
  if (sums_in_float(options, dtype)) state_->wide_factored.emplace(options.sinusoid(), range);
}

const torch::Tensor& PositionalEncodingAccess::rows_to_add(PositionalEncodingImpl& module) {
  const torch::Tensor& pe = module.pe;
  if (module.options.sinusoid().precision() != Precision::Exact || !pe.defined() || !pe.is_cpu() ||
      !at::isReducedFloatingType(pe.scalar_type()) || pe.requires_grad())  // a trained one is added
    return pe;
  PositionalEncodingState& state = *module.state_;
  static std::mutex looking;  // held long only after a conversion, a load or growth
  const std::lock_guard<std::mutex> lock(looking);
  if (!is_known(state, pe)) {
    const torch::NoGradGuard no_grad;
    if (!state.wide.defined() || state.wide.size(0) != pe.size(1))
      state.wide = sinusoid_table(module.options.sinusoid(), pe.size(1));
    state.known_rounded = is_rounded_from(pe, state.wide, module.options.sinusoid());
    state.known_data = pe.const_data_ptr();
    state.known_version = torch_internals::version_of(pe);
    state.known_values = pe.is_inference() ? pe.clone() : torch::Tensor();
  }
  return state.known_rounded ? state.wide : pe;
}

PositionRows PositionalEncodingAccess::rows_for(PositionalEncodingImpl& module,
                                                const PositionRequest& request,
                                                torch::Device device, Summing summing,
                                                c10::function_ref<void()> before_growth) {
  const PositionalEncodingOptions& options = module.options;
  PositionalEncodingState& state = *module.state_;
  PositionRows found;
  found.which.batch_first(options.batch_first());
  if (options.table_source() != TableSource::Buffer) {
    check_positions(options, request);
    const bool wide = summing == Summing::RoundsOnce;
    const auto& table = wide && state.wide_factored ? state.wide_factored : state.factored;
    const auto dtype = wide && sums_in_float(options, state.dtype) ? torch::kFloat : state.dtype;
    found.rows = c10::MaybeOwned<torch::Tensor>::owned(
        sent_to(rows_from(table, options.sinusoid(), request, dtype), device));
    return found;
  }
  if (options.grow()) {
    found.held = std::shared_lock<std::shared_mutex>(state.lock);
    if (const int64_t rows = rows_needed(request); rows > module.pe.size(1)) {
      found.held.unlock();
      before_growth();
      module.grow_to(rows);
      found.held.lock();
    }
  }
  found.rows = c10::MaybeOwned<torch::Tensor>::borrowed(
      summing == Summing::RoundsOnce ? rows_to_add(module) : module.pe);
  found.which.offset(request.offset).position_ids(request.position_ids);
  return found;
}

torch::Tensor PositionalEncodingImpl::forward(const torch::Tensor& x, int64_t offset,
                                              const torch::Tensor& position_ids) {
  TORCH_CHECK_VALUE(x.dim() == 2 || x.dim() == 3,
                    "[PositionalEncoding] x must be (B, L, D) or (L, D). Got ", x.sizes());
  const PositionRequest request(x.sizes().slice(0, x.dim() - 1), options.batch_first(), offset,
                                position_ids);
  const PositionRows found = PositionalEncodingAccess::rows_for(*this, request, x.device(),
                                                                Summing::RoundsEachStep, [] {});
  const bool is_table = options.table_source() == TableSource::Buffer;
  return dropout->forward(
      is_table ? functional::positional_encoding(x, *found.rows, found.which)
               : functional::add_position_rows(x, *found.rows, options.batch_first()));
}

torch::Tensor PositionalEncodingImpl::table(int64_t rows) {
  TORCH_CHECK_VALUE(pe.defined(),
                    "[PositionalEncoding] there is a table with TableSource::Buffer only");
  {
    std::shared_lock<std::shared_mutex> reading(state_->lock);
    // detach(): a separate handle on the current rows, unaffected by growth in another thread
    if (!options.grow() || rows <= pe.size(1)) return pe.detach();
  }
  grow_to(rows);
  std::shared_lock<std::shared_mutex> reading(state_->lock);
  return pe.detach();
}

void PositionalEncodingImpl::grow_to(int64_t rows) {
  TORCH_CHECK_VALUE(rows <= kPositionLimit,
                    "[PositionalEncoding] positions must be below 2^31. Got ", rows - 1);
  std::unique_lock<std::shared_mutex> writing(state_->lock);
  const int64_t present = pe.size(1);
  if (rows <= present) return;  // another thread was faster
  TORCH_CHECK_VALUE(!pe.requires_grad(),
                    "[PositionalEncoding] a table that requires a gradient cannot grow: it has ",
                    present, " rows. Got a position that needs ", rows,
                    "; make it with a larger max_len");
  // The table stays an inference tensor, or a normal one, whatever the current mode is.
  const c10::InferenceMode as_made(pe.is_inference());
  const torch::NoGradGuard no_grad;
  pe.set_data(grown_table(pe, options.sinusoid(), rows));
}

}  // namespace posenc
