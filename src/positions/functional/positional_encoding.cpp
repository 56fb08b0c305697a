#include "posenc/positions/functional/positional_encoding.h"

#include <ATen/TensorOperators.h>

#include "positions/functional/lookup.h"

namespace posenc::functional {
namespace {

// (1, rows, D) or (rows, D) -> (rows, D)
at::Tensor as_matrix(const at::Tensor& table) {
  const bool batched = table.dim() == 3 && table.size(0) == 1;
  TORCH_CHECK_VALUE(batched || table.dim() == 2,
                    "[PositionalEncoding] table must be (rows, D) or (1, rows, D). Got ",
                    table.sizes());
  return batched ? table.squeeze(0) : table;
}

bool sequence_first(const at::Tensor& x, bool batch_first) { return x.dim() == 3 && !batch_first; }

int64_t length_of(const at::Tensor& x, bool batch_first) {
  return x.size(x.dim() == 2 || sequence_first(x, batch_first) ? 0 : 1);
}

void check_input(const at::Tensor& x, int64_t d_model) {
  TORCH_CHECK_VALUE(x.dim() == 2 || x.dim() == 3,
                    "[PositionalEncoding] x must be (B, L, D) or (L, D). Got ", x.sizes());
  TORCH_CHECK_TYPE(x.is_floating_point(), "[PositionalEncoding] x must be real-valued. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.size(-1) == d_model, "[PositionalEncoding] x must have d_model ", d_model,
                    " in its last axis. Got ", x.sizes());
}

// Rows for positions offset .. offset + L - 1: (L, D).
at::Tensor consecutive(const at::Tensor& x, const at::Tensor& rows,
                       const PositionalEncodingFuncOptions& options) {
  const int64_t length = length_of(x, options.batch_first());
  const int64_t begin = options.offset();
  TORCH_CHECK_VALUE(begin >= 0, "[PositionalEncoding] offset must not be negative. Got ", begin);
  TORCH_CHECK_VALUE(length <= rows.size(0) && begin <= rows.size(0) - length,
                    "[PositionalEncoding] sequence length ", length,
                    begin == 0 ? c10::str("") : c10::str(" at offset ", begin), " exceeds max_len ",
                    rows.size(0),
                    "; pass .grow(true) to let the table grow, a larger .max_len(), or "
                    ".table_source(TableSource::Factored), which has none");
  return rows.slice(0, begin, begin + length);
}

// Rows for explicit positions: (L, D), or with the layout of x.
at::Tensor explicit_rows(const at::Tensor& x, const at::Tensor& rows,
                         const PositionalEncodingFuncOptions& options) {
  check_position_ids(x.sizes().slice(0, x.dim() - 1), options);
  return position_embedding(options.position_ids(), rows);
}

}  // namespace

void check_position_ids(at::IntArrayRef sizes, const PositionalEncodingFuncOptions& options) {
  const at::Tensor& ids = options.position_ids();
  TORCH_CHECK_VALUE(options.offset() == 0,
                    "[PositionalEncoding] position_ids are absolute: offset must be 0 beside them."
                    " Got ",
                    options.offset());
  const int64_t length = sizes[sizes.size() == 2 && options.batch_first() ? 1 : 0];
  TORCH_CHECK_VALUE((ids.dim() == 1 && ids.size(0) == length) || ids.sizes() == sizes,
                    "[PositionalEncoding] position_ids must be (L) = [", length,
                    "] or, as x is laid out, ", sizes, ". Got ", ids.sizes());
}

at::Tensor positional_encoding(const at::Tensor& x, const at::Tensor& table,
                               const PositionalEncodingFuncOptions& options) {
  const at::Tensor rows = as_matrix(table);
  check_input(x, rows.size(1));
  return add_position_rows(x,
                           options.position_ids().defined() ? explicit_rows(x, rows, options)
                                                            : consecutive(x, rows, options),
                           options.batch_first());
}

at::Tensor add_position_rows(const at::Tensor& x, const at::Tensor& rows, bool batch_first) {
  check_input(x, rows.size(-1));
  const bool one_row = rows.dim() == 2 && rows.size(0) == length_of(x, batch_first);
  TORCH_CHECK_VALUE(one_row || rows.sizes() == x.sizes(),
                    "[PositionalEncoding] rows must be (L, D) or laid out as x is, ", x.sizes(),
                    ". Got ", rows.sizes());
  return x + (one_row && sequence_first(x, batch_first) ? rows.unsqueeze(1) : rows);
}

at::Tensor position_embedding(const at::Tensor& position_ids, const at::Tensor& table) {
  return lookup({"PositionEmbedding", "position", "max_len"}, position_ids, table);
}

}  // namespace posenc::functional
