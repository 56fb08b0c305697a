#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "posenc/positions/functional/positional_encoding.h"

namespace posenc::functional {

/// Names that error messages use for a look-up.
struct LookupNames {
  const char* module;  ///< `TokenEmbedding`
  const char* index;   ///< `id`, `position`
  const char* bound;   ///< `vocab_size`, `max_len`
};

/// Returns table[index] for a table (rows, D) and integer indices of any shape. Errors name the
/// module, the rule and the value. Valid indices cost no extra check: ATen's own range check fails
/// first, and only then is the offending index searched for.
at::Tensor lookup(const LookupNames& names, const at::Tensor& index, const at::Tensor& table,
                  int64_t padding_idx = -1, bool sparse = false);

/// Throws c10::TypeError for indices that are not integers.
void check_index_type(const LookupNames& names, const at::Tensor& index);

/// Throws c10::IndexError for the first index outside [0, rows), with its value and its place.
void check_indices(const LookupNames& names, const at::Tensor& index, int64_t rows);

/// The row that gets no gradient as a non-negative index, and -1 if there is none; a negative index
/// counts from the end. Throws c10::ValueError, calling it `name`, unless it is one of the `rows`.
int64_t padding_row(const char* module, const char* name, const std::optional<int64_t>& index,
                    int64_t rows);

/// Throws c10::ValueError unless the offset is 0 and options.position_ids() match an x (B, L, D),
/// (L, B, D) or (L, D), where `sizes` are the sizes of x without D.
void check_position_ids(at::IntArrayRef sizes, const PositionalEncodingFuncOptions& options);

}  // namespace posenc::functional
