// Similarities of dense rows; those of sparse ones are in sparse_similarity.cpp.
#include "posenc/models/functional/similarity.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cdist.h>
#include <c10/util/Exception.h>

#include "posenc/models/functional/pooling.h"

namespace posenc::functional {
namespace {

void check_rows(const char* function, const at::Tensor& a, const at::Tensor& b) {
  for (const at::Tensor* x : {&a, &b}) {
    TORCH_CHECK_VALUE(x->dim() == 2, "[", function, "] vectors must be rows (N, D). Got ",
                      x->sizes());
    TORCH_CHECK_TYPE(x->is_floating_point(), "[", function,
                     "] vectors must be floating-point. Got ", x->scalar_type());
  }
  TORCH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), "[", function,
                   "] both must have one dtype. Got ", a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK_VALUE(a.size(1) == b.size(1), "[", function, "] both must have one width. Got ",
                    a.sizes(), " and ", b.sizes());
}

// `similarity` in float32 for half types.
template <typename Similarity>
at::Tensor of_rows(const char* function, const at::Tensor& a, const at::Tensor& b,
                   const Similarity& similarity) {
  check_rows(function, a, b);
  const at::ScalarType dtype = a.scalar_type();
  const at::ScalarType wide = at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
  return similarity(a.to(wide), b.to(wide)).to(dtype);
}

at::Tensor negative_distance(const char* function, const at::Tensor& a, const at::Tensor& b,
                             double p) {
  constexpr int64_t kByDifferences = 2;  // never by products
  return of_rows(function, a, b, [&](const at::Tensor& x, const at::Tensor& y) {
    return -at::cdist(x, y, p, kByDifferences);
  });
}

}  // namespace

at::Tensor cosine_similarity(const at::Tensor& a, const at::Tensor& b) {
  return of_rows("cosine_similarity", a, b, [](const at::Tensor& x, const at::Tensor& y) {
    return l2_normalize(x).mm(l2_normalize(y).t());
  });
}

at::Tensor dot_product(const at::Tensor& a, const at::Tensor& b) {
  return of_rows("dot_product", a, b,
                 [](const at::Tensor& x, const at::Tensor& y) { return x.mm(y.t()); });
}

at::Tensor euclidean_similarity(const at::Tensor& a, const at::Tensor& b) {
  return negative_distance("euclidean_similarity", a, b, 2.0);
}

at::Tensor manhattan_similarity(const at::Tensor& a, const at::Tensor& b) {
  return negative_distance("manhattan_similarity", a, b, 1.0);
}

}  // namespace posenc::functional
