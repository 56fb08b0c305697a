#include "train/adam_rows.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "core/torch_internals/parallel_for.h"

namespace posenc::train {
namespace {

at::Tensor factor(double value) { return at::scalar_tensor(value, at::kDouble); }

struct SparseAdamStep {
  at::Tensor parameter, exp_avg, exp_avg_sq;
  at::Tensor indices, values;  // (n,) unique rows, and their gradients (n, ...)
  // Factors are tensors, because mul_() would round a Scalar to the dtype first (bfloat16,
  // float16).
  at::Tensor one_minus_beta1, one_minus_beta2, minus_step_size;
  double eps;

  // Updates rows [from, to) of the gradient, with PyTorch's operations in its order.
  void rows(int64_t from, int64_t to) const {
    const auto index = indices.slice(0, from, to);
    const auto gradient = values.slice(0, from, to);
    const auto moved = [&](const at::Tensor& moment, const at::Tensor& towards,
                           const at::Tensor& share) {
      const auto old = moment.index_select(0, index);
      auto now = towards.sub(old).mul_(share).add_(old);
      at::Tensor(moment).index_copy_(0, index, now);
      return now;
    };
    auto numerator = moved(exp_avg, gradient, one_minus_beta1);
    auto denominator = moved(exp_avg_sq, gradient.pow(2), one_minus_beta2).sqrt_().add_(eps);
    const auto change = numerator.div_(denominator).mul_(minus_step_size);
    at::Tensor(parameter).index_copy_(0, index, change.add_(parameter.index_select(0, index)));
  }

  // On the CPU, works on blocks of rows whose intermediates fit in the L2 cache.
  void all_rows() const {
    const int64_t n = indices.numel();
    if (!parameter.is_cpu()) return rows(0, n);
    constexpr int64_t kBlock = 1 << 14;  // in elements
    const int64_t block = std::max<int64_t>(1, kBlock * n / values.numel());
    torch_internals::parallel_for(0, (n + block - 1) / block, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) rows(i * block, std::min(n, (i + 1) * block));
    });
  }
};

}  // namespace

const char* refusal_of_rows(const at::Tensor& gradient) {
  if (!gradient.is_sparse()) {
    return "the gradient must be sparse, as from an embedding with sparse(true). Got a dense one; "
           "FusedAdam takes those";
  }
  return gradient.sparse_dim() == 1 ? nullptr : "the gradient must be sparse in its rows only";
}

void step_rows(const RowOptions& options, const at::Tensor& parameter, const at::Tensor& gradient,
               torch::optim::AdamParamState& state) {
  const auto [beta1, beta2] = options.betas;
  // Allocate before counting: a call that throws is not a step.
  for (at::Tensor* moment : {&state.exp_avg(), &state.exp_avg_sq()}) {
    if (!moment->defined()) *moment = at::zeros_like(parameter);
  }
  const auto unique = gradient.coalesce();  // the update is nonlinear: make rows unique
  const auto values = options.maximize ? unique._values().neg() : unique._values();
  state.step(state.step() + 1);
  if (values.numel() == 0) return;
  const auto t = static_cast<double>(state.step());
  const double correction1 = 1.0 - std::pow(beta1, t);
  const double correction2 = 1.0 - std::pow(beta2, t);
  SparseAdamStep{parameter,
                 state.exp_avg(),
                 state.exp_avg_sq(),
                 unique._indices()[0],
                 values,
                 factor(1.0 - beta1),
                 factor(1.0 - beta2),
                 factor(-(options.lr * std::sqrt(correction2) / correction1)),
                 options.eps}
      .all_rows();
}

}  // namespace posenc::train
