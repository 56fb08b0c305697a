#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/torch_internals/grad_access.h"
#include "kernels/embed.h"
#include "kernels/group_by_id.h"

namespace posenc::functional {

/// The gradient of a table (rows, dim) of which rows were gathered: that of at::embedding, with the
/// gradients of each row's tokens added in the tokens' order.
struct RowGradient {
  kernels::embed::Type type = kernels::embed::Type::Float32;
  at::ScalarType dtype = at::kFloat;
  int64_t rows = 0, dim = 0;
  double scale = 1.0;                // that the rows were multiplied by
  kernels::embed::DropoutMask kept;  // that they were dropped by after that

  /// The dense gradient (rows, dim), with zeros in rows that belong to no group. `grad` is (tokens,
  /// dim), contiguous.
  at::Tensor dense(const at::Tensor& grad, const kernels::embed::TokenGroups& groups) const;
  /// The coalesced sparse gradient, which has the rows of the groups.
  at::Tensor sparse(const at::Tensor& grad, const kernels::embed::TokenGroups& groups) const;
  /// Adds to the table's .grad directly, if the result is the same as AccumulateGrad's. That
  /// would need a tensor of (rows, dim), mostly zeros, to add. As there, each row is summed first
  /// and then added; the only difference is that a -0.0 in a row that no token uses stays -0.0.
  bool add_to(const torch_internals::GradAccess& access, const at::Tensor& grad,
              const kernels::embed::TokenGroups& groups) const;

 private:
  // The request for the sums of `groups`, except its output.
  kernels::embed::SumRowsRequest request(const at::Tensor& grad,
                                         const kernels::embed::TokenGroups& groups) const;
  // Runs the request; with `scratch`, each sum is added to its row instead of replacing it.
  void sum(const kernels::embed::SumRowsRequest& request, const kernels::embed::TokenGroups& groups,
           bool scratch) const;
};

}  // namespace posenc::functional
