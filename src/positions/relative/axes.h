#pragma once

#include "posenc/positions/relative/window.h"

namespace posenc::relative {

/// The rows of the table of one axis, (2 max(queries, keys) - 1, D), for each query and key:
/// (queries, keys, D). Where one side has fewer places, these are farther apart.
at::Tensor axis_rows(const at::Tensor& table, int64_t queries, int64_t keys);

/// The products of the queries of a grid with the rows of each axis.
struct AxisTerms {
  at::Tensor down, across;  ///< (N, q_h, q_w, k_h, 1) and (N, q_h, q_w, 1, k_w)
};

/// q: (..., q_h * q_w, D), down: (q_h, k_h, D), across: (q_w, k_w, D), as axis_rows() makes them.
AxisTerms axis_terms(const at::Tensor& q, const at::Tensor& down, const at::Tensor& across);

}  // namespace posenc::relative
