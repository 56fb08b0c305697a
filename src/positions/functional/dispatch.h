#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <forward_list>
#include <optional>

#include "kernels/embed.h"

// Checks shared by all fused operations, and tensors as the kernels of the embeddings read them.
// See torch_internals/shortcut.h for whether a tensor is plain and whether autograd records.
namespace posenc::functional {

/// Whether an operation on this many elements is faster with several threads, if there are any.
bool worth_threads(int64_t elements);

/// Finds the kernels' type for `dtype`; with `exact`, sums of half types are rounded only once.
/// Returns false if the kernels do not support `dtype`.
bool find_type(at::ScalarType dtype, bool exact, kernels::embed::Type& type);

/// Whether a half type is summed in float32 (Precision::Exact).
constexpr bool rounds_once(kernels::embed::Type type) {
  return type == kernels::embed::Type::BFloat16Exact || type == kernels::embed::Type::Float16Exact;
}

/// Describes integers in a form that the kernels read, and returns their tensor: `from`, or a copy
/// in `copies` if they need converting. Returns null if `from` is not plain or has no integers.
const at::Tensor* read_integers(const at::Tensor& from, std::forward_list<at::Tensor>& copies,
                                kernels::embed::Integers& to);

/// A table (rows, D) or (1, rows, D). Its rows are `whole` if each is contiguous and none overlap.
struct RowView {
  explicit RowView(const at::Tensor& table);
  int64_t count, width, stride;
  bool whole;
};

/// Finds the row that gets no gradient, -1 if there is none; a negative index counts from the end.
/// Returns false if it is not one of the rows.
bool find_padding_row(const std::optional<int64_t>& index, int64_t rows, int64_t& found);

}  // namespace posenc::functional
