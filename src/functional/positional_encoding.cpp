#include "posenc/functional/positional_encoding.h"

#include "functional/lookup.h"

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

void check_input(const at::Tensor& x, const at::Tensor& rows) {
  TORCH_CHECK_VALUE(x.dim() == 2 || x.dim() == 3,
                    "[PositionalEncoding] x must be (B, L, D) or (L, D). Got ", x.sizes());
  TORCH_CHECK_TYPE(x.is_floating_point(), "[PositionalEncoding] x must be real-valued. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.size(-1) == rows.size(1), "[PositionalEncoding] x must have d_model ",
                    rows.size(1), " in its last axis. Got ", x.sizes());
}

// Positions offset .. offset + L - 1, to be added to x: (L, D) or, sequence first, (L, 1, D).
at::Tensor consecutive(const at::Tensor& x, const at::Tensor& rows,
                       const PositionalEncodingFuncOptions& options) {
  const bool sequence_first = x.dim() == 3 && !options.batch_first();
  const int64_t length = x.size(x.dim() == 2 || sequence_first ? 0 : 1);
  const int64_t begin = options.offset();
  TORCH_CHECK_VALUE(begin >= 0, "[PositionalEncoding] offset must not be negative. Got ", begin);
  TORCH_CHECK_VALUE(length <= rows.size(0) && begin <= rows.size(0) - length,
                    "[PositionalEncoding] sequence length ", length,
                    begin == 0 ? c10::str("") : c10::str(" at offset ", begin), " exceeds max_len ",
                    rows.size(0),
                    "; pass .grow(true) to let the table grow, or a larger .max_len()");
  const at::Tensor slice = rows.slice(0, begin, begin + length);
  return sequence_first ? slice.unsqueeze(1) : slice;
}

// The rows at explicit positions, to be added to x.
at::Tensor explicit_rows(const at::Tensor& x, const at::Tensor& rows,
                         const PositionalEncodingFuncOptions& options) {
  const at::Tensor& ids = options.position_ids();
  TORCH_CHECK_VALUE(options.offset() == 0,
                    "[PositionalEncoding] position_ids are absolute: offset must be 0 beside them."
                    " Got ",
                    options.offset());
  const auto leading = x.sizes().slice(0, x.dim() - 1);
  const bool sequence_first = x.dim() == 3 && !options.batch_first();
  const int64_t length = x.size(x.dim() == 2 || sequence_first ? 0 : 1);
  const bool one_row = ids.dim() == 1 && ids.size(0) == length;
  TORCH_CHECK_VALUE(one_row || ids.sizes() == leading,
                    "[PositionalEncoding] position_ids must be (L) = [", length,
                    "] or, as x is laid out, ", leading, ". Got ", ids.sizes());
  const at::Tensor found = position_embedding(ids, rows);
  return one_row && sequence_first ? found.unsqueeze(1) : found;
}

}  // namespace

at::Tensor positional_encoding(const at::Tensor& x, const at::Tensor& table,
                               const PositionalEncodingFuncOptions& options) {
  const at::Tensor rows = as_matrix(table);
  check_input(x, rows);
  return x + (options.position_ids().defined() ? explicit_rows(x, rows, options)
                                               : consecutive(x, rows, options));
}

at::Tensor position_embedding(const at::Tensor& position_ids, const at::Tensor& table) {
  return lookup({"PositionEmbedding", "position", "max_len"}, position_ids, table);
}

}  // namespace posenc::functional
