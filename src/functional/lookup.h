#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace posenc::functional {

/// What a look-up calls its table in an error message.
struct LookupNames {
  const char* module;  ///< `TokenEmbedding`
  const char* index;   ///< `id`, `position`
  const char* bound;   ///< `vocab_size`, `max_len`
};

/// table[index] for a table (rows, D) and integer indices of any shape, with errors that
/// name the module, the rule and the value. Checking costs nothing while the indices are right:
/// ATen's own range check is what notices, and only then is the culprit looked for.
at::Tensor lookup(const LookupNames& names, const at::Tensor& index, const at::Tensor& table,
                  int64_t padding_idx = -1, bool sparse = false);

}  // namespace posenc::functional
