#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Vectors of the tokens of texts: the rows of each text below those of the one before, without
/// padding.
struct MultiVectors {
  at::Tensor embeddings;  ///< (T, D)
  at::Tensor lengths;     ///< int64 (N): how many rows each text has; their sum is T
};

}  // namespace posenc
