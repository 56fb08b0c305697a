#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Vectors (N, V) of which only the entries other than zero are kept: the rows of a CSR matrix.
struct SparseVectors {
  at::Tensor crow_indices;  ///< (N + 1) int64: where the entries of each row begin, and the end
  at::Tensor col_indices;   ///< (entries) int64, ascending in each row
  at::Tensor values;        ///< (entries) float32
  int64_t width = 0;        ///< V

  /// How many vectors there are.
  int64_t size() const { return crow_indices.numel() - 1; }
  /// A CSR tensor of the same memory.
  at::Tensor to_torch() const;
};

}  // namespace posenc
