#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"
#include "posenc/models/functional/sparse_vectors.h"

namespace posenc {
namespace functional POSENC_EXPORT {

// The similarities of each row of `a` to each row of `b`: the larger, the more similar.
//
// a: (N, D), b: (M, D), floating-point  ->  (N, M), in their dtype; half types are computed in
// float32. Sparse vectors give float32; they are multiplied entry by entry and never made dense.
//
// Errors: c10::TypeError for dtypes that are not floating-point or differ; c10::ValueError for
// another rank, widths that differ, and sparse vectors whose indices are out of range or not
// ascending.
//
// Source: sentence-transformers 6.2, util/similarity.py.

/// a . b / (max(|a|, 1e-12) max(|b|, 1e-12)): the cosine of the angle between the rows, 0 for rows
/// of zeros.
///
/// ```cpp
/// torch::Tensor queries = torch::randn({2, 384}), documents = torch::randn({100, 384});
/// auto [scores, ids] = posenc::functional::cosine_similarity(queries, documents).topk(10);
/// ```
at::Tensor cosine_similarity(const at::Tensor& a, const at::Tensor& b);
/// The same for sparse vectors.
at::Tensor cosine_similarity(const SparseVectors& a, const SparseVectors& b);

/// a . b.
at::Tensor dot_product(const at::Tensor& a, const at::Tensor& b);
/// The same for sparse vectors.
at::Tensor dot_product(const SparseVectors& a, const SparseVectors& b);

/// -|a - b|, the negative of the Euclidean distance. It is computed from the differences and not
/// from products, which would lose what distinguishes near rows.
at::Tensor euclidean_similarity(const at::Tensor& a, const at::Tensor& b);
/// The same for sparse vectors.
at::Tensor euclidean_similarity(const SparseVectors& a, const SparseVectors& b);

/// The negative of the sum of |a_j - b_j|.
at::Tensor manhattan_similarity(const at::Tensor& a, const at::Tensor& b);
/// The same for sparse vectors.
at::Tensor manhattan_similarity(const SparseVectors& a, const SparseVectors& b);

}  // namespace functional
}  // namespace posenc
