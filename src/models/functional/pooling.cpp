#include "posenc/models/functional/pooling.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <limits>
#include <utility>

namespace posenc::functional {
namespace {

void check_hidden(const char* function, const at::Tensor& hidden) {
  TORCH_CHECK_VALUE(hidden.dim() == 3, "[", function, "] hidden must be (B, L, D). Got ",
                    hidden.sizes());
  TORCH_CHECK_TYPE(hidden.is_floating_point(), "[", function,
                   "] hidden must be floating-point. Got ", hidden.scalar_type());
}

void check_mask(const char* function, const at::Tensor& hidden, const at::Tensor& mask) {
  check_hidden(function, hidden);
  if (!mask.defined()) return;
  TORCH_CHECK_TYPE(at::isIntegralType(mask.scalar_type(), /*includeBool=*/true), "[", function,
                   "] attention_mask must be bool or an integer type. Got ", mask.scalar_type());
  TORCH_CHECK_VALUE(mask.sizes() == hidden.sizes().slice(0, 2), "[", function,
                    "] attention_mask must be (B, L) = ", hidden.sizes().slice(0, 2), ". Got ",
                    mask.sizes());
}

void check_token(const char* function, const at::Tensor& hidden) {
  TORCH_CHECK_VALUE(hidden.size(1) > 0, "[", function, "] sequences must have a token. Got ",
                    hidden.sizes());
}

// The sum of half types may exceed their range where the mean does not.
at::ScalarType sum_type(const at::Tensor& hidden) {
  const at::ScalarType dtype = hidden.scalar_type();
  return at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
}

// Which tokens are real, (B, L, 1).
at::Tensor real_tokens(const at::Tensor& hidden, const at::Tensor& mask) {
  if (mask.defined()) return mask.ne(0).unsqueeze(-1);
  return at::ones({hidden.size(0), hidden.size(1), 1}, hidden.options().dtype(at::kBool));
}

// The sum of the real tokens, (B, D), and their number, (B, 1).
std::pair<at::Tensor, at::Tensor> sum_and_count(const at::Tensor& hidden, const at::Tensor& mask) {
  const at::ScalarType wide = sum_type(hidden);
  const at::Tensor is_token = real_tokens(hidden, mask);
  return {at::sum(at::where(is_token, hidden, 0), 1, /*keepdim=*/false, wide),
          is_token.sum(1, /*keepdim=*/false, wide)};
}

at::Tensor row_of_each(const at::Tensor& hidden, const at::Tensor& indices) {
  return hidden.index({at::arange(hidden.size(0), indices.options()), indices});
}

}  // namespace

at::Tensor mean_pool(const at::Tensor& hidden, const at::Tensor& attention_mask) {
  check_mask("mean_pool", hidden, attention_mask);
  if (!attention_mask.defined()) return hidden.mean(1);
  const auto [sum, count] = sum_and_count(hidden, attention_mask);
  // Not the 1e-9 of sentence-transformers: counts are integers.
  return (sum / at::clamp_min(count, 1.0)).to(hidden.scalar_type());
}

at::Tensor mean_sqrt_length_pool(const at::Tensor& hidden, const at::Tensor& attention_mask) {
  check_mask("mean_sqrt_length_pool", hidden, attention_mask);
  const auto [sum, count] = sum_and_count(hidden, attention_mask);
  return (sum / at::clamp_min(count, 1.0).sqrt()).to(hidden.scalar_type());
}

at::Tensor weighted_mean_pool(const at::Tensor& hidden, const at::Tensor& attention_mask,
                              const at::Tensor& first) {
  constexpr const char* kName = "weighted_mean_pool";
  check_mask(kName, hidden, attention_mask);
  const int64_t batch = hidden.size(0), length = hidden.size(1);
  TORCH_CHECK_VALUE(!first.defined() || first.sizes() == at::IntArrayRef({batch}), "[", kName,
                    "] first must be (B) = (", batch, "). Got ", first.sizes());
  if (length == 0) return hidden.new_zeros({batch, hidden.size(2)});
  const at::ScalarType wide = sum_type(hidden);
  const at::Tensor is_token = real_tokens(hidden, attention_mask);
  const at::Tensor begin = first.defined() ? first : is_token.squeeze(-1).to(at::kInt).argmax(1);
  const at::Tensor positions = at::arange(1, length + 1, begin.options());
  const at::Tensor weights =
      at::where(is_token, (positions - begin.unsqueeze(-1)).unsqueeze(-1), 0).to(wide);
  const at::Tensor sum = at::sum(at::where(is_token, hidden, 0) * weights, 1);
  return (sum / at::clamp_min(weights.sum(1), 1e-9)).to(hidden.scalar_type());
}

at::Tensor max_pool(const at::Tensor& hidden, const at::Tensor& attention_mask) {
  check_mask("max_pool", hidden, attention_mask);
  check_token("max_pool", hidden);
  if (!attention_mask.defined()) return hidden.amax(1);
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  return hidden.masked_fill(attention_mask.eq(0).unsqueeze(-1), kLeast).amax(1);
}

at::Tensor first_token_pool(const at::Tensor& hidden, const at::Tensor& attention_mask) {
  check_mask("first_token_pool", hidden, attention_mask);
  check_token("first_token_pool", hidden);
  if (!attention_mask.defined()) return hidden.select(1, 0);
  return row_of_each(hidden, attention_mask.ne(0).to(at::kInt).argmax(1));
}

at::Tensor last_token_pool(const at::Tensor& hidden, const at::Tensor& attention_mask) {
  check_mask("last_token_pool", hidden, attention_mask);
  check_token("last_token_pool", hidden);
  const int64_t last = hidden.size(1) - 1;
  if (!attention_mask.defined()) return hidden.select(1, last);
  const at::Tensor is_token = attention_mask.ne(0);
  const at::Tensor rows = row_of_each(hidden, last - is_token.flip(1).to(at::kInt).argmax(1));
  return rows.masked_fill(is_token.any(1).logical_not().unsqueeze(-1), 0.0);
}

at::Tensor first_pool(const at::Tensor& hidden) {
  check_hidden("first_pool", hidden);
  check_token("first_pool", hidden);
  return hidden.select(1, 0);
}

at::Tensor l2_normalize(const at::Tensor& x, double eps) {
  TORCH_CHECK_TYPE(x.is_floating_point(), "[l2_normalize] x must be floating-point. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() > 0, "[l2_normalize] x must be (..., D). Got a scalar");
  return x / at::linalg_vector_norm(x, 2, {-1}, /*keepdim=*/true).clamp_min(eps).expand_as(x);
}

}  // namespace posenc::functional
