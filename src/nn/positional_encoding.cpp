#include "posenc/nn/positional_encoding.h"

#include <algorithm>
#include <mutex>
#include <ostream>

#include "nn/computed_table.h"
#include "nn/print.h"
#include "posenc/core/check.h"
#include "posenc/functional/positional_encoding.h"
#include "posenc/sinusoid/positions.h"
#include "posenc/sinusoid/table.h"

namespace posenc {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 31;  // beyond, a float32 recipe has no digit left

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
  switch (options.storage()) {
    case Storage::Table:
      pe =
          register_buffer("pe", sinusoid_table(options.sinusoid(), options.max_len()).unsqueeze(0));
      break;
    case Storage::Factored:
      factored_.emplace(options.sinusoid(), std::min(options.max_len(), kMaxRows), dtype_);
      break;
    case Storage::None: check(options.sinusoid()); break;
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
  if (factored_)
    factored_.emplace(options.sinusoid(), std::min(options.max_len(), kMaxRows), dtype);
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
  if (options.storage() != Storage::Table) return forward_without_table(x, offset, position_ids);
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
    return add(table(sensible ? offset + x.size(axis) : 1));  // if not, add() says what is wrong
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
  const auto row_type = torch::TensorOptions(dtype_).device(x.device());
  torch::Tensor rows;
  if (position_ids.defined()) {
    functional::check_position_ids(x, functional::PositionalEncodingFuncOptions()
                                          .offset(offset)
                                          .position_ids(position_ids)
                                          .batch_first(options.batch_first()));
    rows = factored_ ? factored_->rows(position_ids)
                     : posenc::sinusoid(options.sinusoid(), position_ids, row_type);
  } else {
    TORCH_CHECK_VALUE(x.dim() == 2 || x.dim() == 3,
                      "[PositionalEncoding] x must be (B, L, D) or (L, D). Got ", x.sizes());
    const int64_t length = x.size(x.dim() == 3 && options.batch_first() ? 1 : 0);
    TORCH_CHECK_VALUE(offset >= 0, "[PositionalEncoding] offset must not be negative. Got ",
                      offset);
    TORCH_CHECK_VALUE(offset <= kMaxRows - length,
                      "[PositionalEncoding] positions must be below 2^31. Got ", offset, " + ",
                      length);
    rows = factored_ ? factored_->rows(offset, length)
                     : posenc::sinusoid(options.sinusoid(), positions_from_offset(length, offset),
                                        row_type);
  }
  return dropout->forward(
      functional::add_position_rows(x, rows.to(x.device()), options.batch_first()));
}

torch::Tensor PositionalEncodingImpl::table(int64_t rows) {
  TORCH_CHECK_VALUE(pe.defined(), "[PositionalEncoding] there is a table with Storage::Table only");
  {
    std::shared_lock<std::shared_mutex> reading(lock_);
    // detach(): an own handle on the present rows, which growth in another thread leaves alone
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
  if (rows <= present) return;  // another thread was here first
  const int64_t wanted = std::min(std::max(rows, 2 * present), kMaxRows);
  // Present rows are kept as they are: they may come from a checkpoint.
  const auto more =
      sinusoid_table(options.sinusoid(), wanted, pe.options()).slice(0, present).unsqueeze(0);
  pe.set_data(torch::cat({pe, more}, 1));
}

}  // namespace posenc
