#pragma once

// Turns a tensor of any shape into tables that can be compared.

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace posenc::identification {

/// A tensor read as a table.
struct TableView {
  at::Tensor rows;               ///< (R, C) on the CPU
  std::vector<int64_t> extents;  ///< of the grid that the shape suggests, outermost first
  std::string shape;             ///< such as `(1, D, H, W)`
  int64_t leading = 0;           ///< learned rows removed from the embeddings
  std::vector<int64_t> zeros;    ///< rows of zeros
  bool paired = false;           ///< sines and cosines have one of the usual distances
};

/// The number of ways to read the shape as a table of at least 3 rows and 4 channels.
int64_t count_table_views(at::IntArrayRef sizes);

/// Whether some thousand elements can come from a sinusoid: finite, and bounded by about sqrt(2)
/// times their root mean square, unlike a normal distribution.
bool may_be_sinusoid(const at::Tensor& tensor);

/// The tensor in the narrowest floating-point type that represents all its values.
at::Tensor to_narrowest_dtype(const at::Tensor& tensor);

/// Every view with at least 3 rows and 4 channels.
std::vector<TableView> table_views(const at::Tensor& tensor);

/// The view without its leading learned rows, and with its rows of zeros listed; nullopt unless its
/// rows have the norm of paired sines and cosines.
std::optional<TableView> without_learned_rows(const TableView& view);

/// About twenty row numbers, int64: the first, the last and some in between.
at::Tensor sample_rows(int64_t count);

}  // namespace posenc::identification
