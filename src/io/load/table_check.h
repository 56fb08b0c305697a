#pragma once

#include <ATen/core/Tensor.h>

#include "io/load/mapped_source.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/io/load.h"

namespace posenc::io {

/// Whether two tensors of these sizes are the same table, except for its number of rows.
bool same_but_rows(const ComputedTable& table, at::IntArrayRef module, at::IntArrayRef file);

/// A computed table of the module, compared with the file's.
struct TableCheck {
  TableReport report;
  /// The rows to load into the module: the file's rows, followed by the recipe's if the file has
  /// fewer. Undefined if the module cannot compute the table.
  at::Tensor value;
};
TableCheck check_table(const ComputedTable& table, const at::Tensor& tensor,
                       const MappedSource& source, std::size_t index);

}  // namespace posenc::io
