#include "posenc/positions/relative/term.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/matmul.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "posenc/positions/relative/scores.h"
#include "positions/relative/broadcasts.h"
#include "positions/relative/limits.h"
#include "positions/relative/weights.h"

namespace posenc {

void relative::check_term(const char* who, const at::Tensor& x, const at::Tensor& rows,
                          int64_t others, const Index& index, int64_t offset) {
  TORCH_CHECK_TYPE(x.scalar_type() == rows.scalar_type(), "[", who,
                   "] x and rows must have the same dtype. Got ", x.scalar_type(), " and ",
                   rows.scalar_type());
  TORCH_CHECK_VALUE(x.dim() == 4, "[", who, "] x must be (B, H, L, D). Got ", x.sizes());
  TORCH_CHECK_VALUE(rows.dim() >= 2 && rows.dim() <= 4 && rows.size(-1) == x.size(-1), "[", who,
                    "] rows must be (R, ", x.size(-1),
                    "), or have axes of heads and sequences before. Got ", rows.sizes());
  TORCH_CHECK_VALUE(
      relative::broadcasts(x.sizes().slice(0, 2), rows.sizes().slice(0, rows.dim() - 2)), "[", who,
      "] rows must be of the heads and sequences of x, or of one. Got ", rows.sizes(), " beside ",
      x.sizes());
  TORCH_CHECK_VALUE(others >= 0, "[", who, "] the number of keys must not be negative. Got ",
                    others);
  TORCH_CHECK_VALUE(offset >= 0 && std::max(offset, others) <= relative::kMostPositions, "[", who,
                    "] offset must not be negative, and positions must be at most ",
                    relative::kMostPositions, ". Got offset ", offset, " and ", others, " others");
  const int64_t expected = relative_rows(index);
  TORCH_CHECK_VALUE(expected == 0 || rows.size(-2) == expected, "[", who, "] rows must have ",
                    expected, " rows, one for each index. Got ", rows.sizes());
}

at::Tensor relative_term(const at::Tensor& x, const at::Tensor& rows, int64_t others,
                         const relative::Index& index, relative::Contract contract,
                         int64_t offset) {
  relative::check_term("relative_term", x, rows, others, index, offset);
  const bool of_keys = contract == relative::Contract::Key;
  const at::Tensor products = at::matmul(x, rows.transpose(-1, -2));  // (B, H, L, R)
  const auto* shift = std::get_if<relative::Shift>(&index);
  if (shift != nullptr && !of_keys) return relative_shift(products, others, shift->origin - offset);
  const int64_t queries = of_keys ? others : x.size(2), keys = of_keys ? x.size(2) : others;
  if (shift != nullptr) {
    const int64_t first = shift->origin - offset - queries + 1,
                  last = shift->origin - offset + keys - 1;
    TORCH_CHECK_VALUE(queries == 0 || keys == 0 || (first >= 0 && last < rows.size(-2)),
                      "[relative_term] the rows must reach from the first key of the last query to "
                      "the last key of the first, ",
                      first, " to ", last, ". Got ", rows.sizes());
  }
  const auto integers = x.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor of_pairs = relative_index(at::arange(offset, offset + queries, integers),
                                             at::arange(keys, integers), index);
  const at::Tensor of_rows = of_keys ? of_pairs.t() : of_pairs;
  std::vector<int64_t> sizes = products.sizes().vec();
  sizes.back() = others;
  const at::Tensor term = at::gather(products, -1, of_rows.expand(sizes));
  return of_keys ? term.transpose(-1, -2) : term;
}

}  // namespace posenc
