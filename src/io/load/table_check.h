#pragma once

#include <ATen/core/Tensor.h>

#include "io/load/source.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/io/load.h"

namespace posenc::io {

/// Whether a tensor of these sizes has the table's, but for its number of rows.
bool same_but_rows(const ComputedTable& table, at::IntArrayRef module, at::IntArrayRef file);

/// A computed table of the module, held against the file's.
struct TableCheck {
  TableReport report;
  /// What the module shall hold: the file's rows, and the recipe's after them where the file has
  /// fewer. Undefined where the module cannot compute the table.
  at::Tensor value;
};
TableCheck check_table(const ComputedTable& table, const at::Tensor& tensor,
                       const TensorSource& source, std::size_t index);

}  // namespace posenc::io
