#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "posenc/train/group.h"

namespace posenc::parallel {

/// A gradient of rows as autograd stores it: `rows[i]` belongs to row `ids[i]` of the whole.
struct SparseRows {
  at::Tensor ids;   ///< (n), int64
  at::Tensor rows;  ///< (n, ...)
};

/// The rows of a sparse COO gradient of `parameter`, each id once; of an undefined one: none.
SparseRows sparse_rows(const at::Tensor& gradient, const at::Tensor& parameter);

/// The sums over all processes, as coalesced sparse tensors with the sizes of `parameters`. Rows
/// are gathered and added in the order of the ranks, so all processes get the same bits; engines
/// for GPUs have no sparse sum. The number of messages depends on that of the parameters alone.
std::vector<at::Tensor> sum_sparse(const RankGroup& group, const std::vector<SparseRows>& own,
                                   const std::vector<at::Tensor>& parameters, const char* caller);

}  // namespace posenc::parallel
