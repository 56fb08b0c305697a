#include "posenc/functional/pooling.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/sum.h>
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
  const at::Tensor is_token =
      attention_mask.ne(0).unsqueeze(-1).expand_as(hidden).to(hidden.scalar_type());
  // Not the 1e-9 of sentence-transformers, which is 0 in half precision; counts are whole numbers.
  return at::sum(hidden * is_token, 1) / at::clamp_min(is_token.sum(1), 1.0);
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
