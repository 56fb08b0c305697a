#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// The positions start, start + step, ... of `count` rows.
struct RowSequence {
  int64_t start = 0, step = 1, count = 0;
};

/// Of a table's rows, where they are whole numbers in sequence.
std::optional<RowSequence> row_sequence(const SinusoidOptions& options, int64_t length);

/// The positions of the rows `index`, int64, of a table of that nominal length, in the type in
/// which the recipe starts with them: int64 or float32.
at::Tensor row_positions(const SinusoidOptions& options, int64_t length, const at::Tensor& index);
/// Of all its rows.
at::Tensor row_positions(const SinusoidOptions& options, int64_t length);

/// The nominal length of a table with this many rows, or 0 where no length gives them.
int64_t nominal_length(const SinusoidOptions& options, int64_t rows);

}  // namespace posenc
