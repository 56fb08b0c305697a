#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include "posenc/export.h"
#include "posenc/models/functional/multi_vectors.h"
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

/// Options of maxsim().
struct MaxSimOptions {
  /// Divides the scores by the number of rows of the query, at least 1: MeanMaxSim.
  TORCH_ARG(bool, mean) = false;
};

/// Late interaction: score(q, d) = sum_i max_j q_i . d_j, over the rows i of a query and j of a
/// document. A document without rows has the score -1e9, before it is divided; nothing is
/// normalised, and no gradients are computed.
///
/// queries: Q texts, documents: N texts  ->  (Q, N), float32. Any number of threads gives the same
/// bits.
///
/// ```cpp
/// posenc::MultiVectors queries = {torch::randn({5, 8}), torch::tensor({2, 3})};
/// posenc::MultiVectors documents = {torch::randn({9, 8}), torch::tensor({4, 0, 5})};
/// torch::Tensor scores = posenc::functional::maxsim(queries, documents);  // (2, 3)
/// ```
///
/// Errors: c10::TypeError for other types; c10::ValueError for shapes, lengths that do not add up
/// to the rows, and widths that differ.
///
/// Source: sentence-transformers 6.2, `maxsim` and `mean_maxsim`.
at::Tensor maxsim(const MultiVectors& queries, const MultiVectors& documents,
                  const MaxSimOptions& options = {});

}  // namespace functional
}  // namespace posenc
