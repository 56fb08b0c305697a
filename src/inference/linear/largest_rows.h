#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "inference/linear/projection.h"

namespace posenc::inference {

/// A product with the columns of rows from `begin` on.
struct ProductOfColumns {
  const Projection* projection;
  int64_t begin;
};

/// The largest entries (segments, out) of the sum of products with rows (N, D), over the rows of
/// each segment; the first lengths[0] rows are the first segment's. -inf for one without rows. Each
/// entry has the bits of the products' own, whatever the number of threads, but no more than a part
/// of the products is in memory. They are computed by posenc's own kernels whatever
/// FreezeOptions::gemm() is.
at::Tensor largest_rows(const std::vector<ProductOfColumns>& products, const at::Tensor& rows,
                        const std::vector<int64_t>& lengths);

}  // namespace posenc::inference
