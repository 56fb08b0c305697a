#pragma once

// From a tensor of any shape to tables that can be compared.

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace posenc::identification {

/// A tensor read as a table.
struct TableView {
  at::Tensor rows;               ///< (R, C) on the CPU
  std::vector<int64_t> extents;  ///< of the grid that the shape shows, outermost first
  std::string shape;             ///< such as `(1, D, H, W)`
  int64_t leading = 0;           ///< learned rows that were taken away in front
  std::vector<int64_t> zeros;    ///< rows of zeros
  bool paired = false;           ///< channels at one of the usual distances are sine and cosine
};

/// In how many ways the shape is a table of at least 3 rows and 4 channels.
int64_t count_table_views(at::IntArrayRef sizes);

/// Whether some thousand elements can come from a sinusoid: finite, and bounded by about sqrt(2)
/// times their root mean square, as no normal distribution is.
bool may_be_sinusoid(const at::Tensor& tensor);

/// The tensor in the narrowest floating-point type that holds all of its values.
at::Tensor to_narrowest_dtype(const at::Tensor& tensor);

/// Every view with at least 3 rows and 4 channels.
std::vector<TableView> table_views(const at::Tensor& tensor);

/// The view without learned rows in front and with its rows of zeros found, where its rows have
/// the norm of sines and cosines in pairs; none where they have not.
std::optional<TableView> without_learned_rows(const TableView& view);

/// Some twenty rows, int64: the first, the last and some between.
at::Tensor sample_rows(int64_t count);

}  // namespace posenc::identification
