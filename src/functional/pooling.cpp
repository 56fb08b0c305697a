#include "posenc/functional/pooling.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

namespace posenc::functional {
namespace {

void check_hidden(const char* function, const at::Tensor& hidden) {
  TORCH_CHECK_VALUE(hidden.dim() == 3, "[", function, "] hidden must be (B, L, D). Got ",
                    hidden.sizes());
  TORCH_CHECK_TYPE(hidden.is_floating_point(), "[", function,
                   "] hidden must be floating-point. Got ", hidden.scalar_type());
}

}  // namespace

at::Tensor mean_pool(const at::Tensor& hidden, const at::Tensor& attention_mask) {
  check_hidden("mean_pool", hidden);
  if (!attention_mask.defined()) return hidden.mean(1);
  TORCH_CHECK_TYPE(at::isIntegralType(attention_mask.scalar_type(), /*includeBool=*/true),
                   "[mean_pool] attention_mask must be bool or an integer type. Got ",
                   attention_mask.scalar_type());
  TORCH_CHECK_VALUE(attention_mask.sizes() == hidden.sizes().slice(0, 2),
                    "[mean_pool] attention_mask must be (B, L) = ", hidden.sizes().slice(0, 2),
                    ". Got ", attention_mask.sizes());
  const at::ScalarType dtype = hidden.scalar_type();
  // The sum of half types may exceed their range where the mean does not.
  const at::ScalarType wide = at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
  const at::Tensor is_token = attention_mask.ne(0).unsqueeze(-1);  // (B, L, 1)
  const at::Tensor sum = at::sum(at::where(is_token, hidden, 0), 1, /*keepdim=*/false, wide);
  // Not the 1e-9 of sentence-transformers: counts are whole numbers.
  return (sum / at::clamp_min(is_token.sum(1, /*keepdim=*/false, wide), 1.0)).to(dtype);
}

at::Tensor first_pool(const at::Tensor& hidden) {
  check_hidden("first_pool", hidden);
  TORCH_CHECK_VALUE(hidden.size(1) > 0, "[first_pool] sequences must have a token. Got ",
                    hidden.sizes());
  return hidden.select(1, 0);
}

at::Tensor l2_normalize(const at::Tensor& x, double eps) {
  TORCH_CHECK_TYPE(x.is_floating_point(), "[l2_normalize] x must be floating-point. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() > 0, "[l2_normalize] x must be (..., D). Got a scalar");
  return x / at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true).clamp_min(eps).expand_as(x);
}

}  // namespace posenc::functional
