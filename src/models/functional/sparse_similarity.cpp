// Similarities of sparse rows: each row of `a` is spread out once, and read at the entries of each
// row of `b`.
#include <ATen/ops/empty.h>
#include <ATen/ops/sparse_csr_tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/torch_internals/parts.h"
#include "models/functional/sparse_rows.h"
#include "posenc/models/functional/similarity.h"

namespace posenc {

at::Tensor SparseVectors::to_torch() const {
  return at::sparse_csr_tensor(crow_indices, col_indices, values, {size(), width},
                               values.options().layout(at::kSparseCsr));
}

namespace functional {
namespace {

// finish(sum over columns of term(a_j, b_j)) for the rows n and m of both, where term(x, 0) is
// alone(x) and term(0, 0) is 0.
template <typename Term, typename Alone, typename Finish>
at::Tensor of_sparse_rows(const char* function, const SparseVectors& of_a,
                          const SparseVectors& of_b, const Term& term, const Alone& alone,
                          const Finish& finish) {
  const SparseRows a(function, of_a), b(function, of_b);
  TORCH_CHECK_VALUE(of_a.width == of_b.width, "[", function, "] both must have one width. Got ",
                    of_a.width, " and ", of_b.width);
  at::Tensor out = at::empty({a.count(), b.count()}, at::kFloat);
  auto* const result = out.data_ptr<float>();
  constexpr int64_t kGrainEntries = 1 << 15;
  const int64_t per_column = 1 + a.count() * b.entries() / std::max<int64_t>(b.count(), 1);
  const int64_t grain = std::max<int64_t>(1, kGrainEntries / per_column);
  torch_internals::parallel_parts(0, b.count(), grain, [&](int64_t first, int64_t last) {
    std::vector<double> spread(static_cast<std::size_t>(of_a.width));
    for (int64_t n = 0; n < a.count(); ++n) {
      double rest = 0.0;
      for (int64_t i = a.begin(n); i < a.end(n); ++i) {
        spread[static_cast<std::size_t>(a.column(i))] = a.value(i);
        rest += alone(a.value(i));
      }
      for (int64_t m = first; m < last; ++m) {
        double sum = rest;
        for (int64_t i = b.begin(m); i < b.end(m); ++i) {
          const double own = spread[static_cast<std::size_t>(b.column(i))];
          sum += term(own, b.value(i)) - alone(own);
        }
        result[n * b.count() + m] = static_cast<float>(finish(sum, n, m));
      }
      for (int64_t i = a.begin(n); i < a.end(n); ++i)
        spread[static_cast<std::size_t>(a.column(i))] = 0.0;
    }
  });
  return out;
}

template <typename Finish>
at::Tensor products(const char* function, const SparseVectors& a, const SparseVectors& b,
                    const Finish& finish) {
  return of_sparse_rows(
      function, a, b, [](double x, double y) { return x * y; }, [](double) { return 0.0; }, finish);
}

// The length of each row, at least that of cosine_similarity().
std::vector<double> lengths(const char* function, const SparseVectors& of_rows) {
  const SparseRows rows(function, of_rows);
  std::vector<double> all;
  for (int64_t row = 0; row < rows.count(); ++row) {
    double sum = 0.0;
    for (int64_t i = rows.begin(row); i < rows.end(row); ++i)
      sum += static_cast<double>(rows.value(i)) * rows.value(i);
    all.push_back(std::max(std::sqrt(sum), 1e-12));
  }
  return all;
}

}  // namespace

at::Tensor cosine_similarity(const SparseVectors& a, const SparseVectors& b) {
  constexpr const char* kName = "cosine_similarity";
  const std::vector<double> of_a = lengths(kName, a), of_b = lengths(kName, b);
  return products(kName, a, b, [&](double sum, int64_t n, int64_t m) {
    return sum / of_a[static_cast<std::size_t>(n)] / of_b[static_cast<std::size_t>(m)];
  });
}

at::Tensor dot_product(const SparseVectors& a, const SparseVectors& b) {
  return products("dot_product", a, b, [](double sum, int64_t, int64_t) { return sum; });
}

at::Tensor euclidean_similarity(const SparseVectors& a, const SparseVectors& b) {
  return of_sparse_rows(
      "euclidean_similarity", a, b, [](double x, double y) { return (x - y) * (x - y); },
      [](double x) { return x * x; },
      [](double sum, int64_t, int64_t) { return -std::sqrt(std::max(sum, 0.0)); });
}

at::Tensor manhattan_similarity(const SparseVectors& a, const SparseVectors& b) {
  return of_sparse_rows(
      "manhattan_similarity", a, b, [](double x, double y) { return std::abs(x - y); },
      [](double x) { return std::abs(x); },
      [](double sum, int64_t, int64_t) { return -std::max(sum, 0.0); });
}

}  // namespace functional
}  // namespace posenc
