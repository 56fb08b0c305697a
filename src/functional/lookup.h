#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

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

}  // namespace posenc::functional
