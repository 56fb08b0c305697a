#include "train/clip_norm.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <optional>
#include <unordered_set>

namespace posenc::train {
namespace {

// The values that a gradient stores. A sparse gradient is coalesced first: its values are then all
// of its nonzero elements. LibTorch's mul_() on `grad.data()` would scale a copy of them.
at::Tensor stored_values(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.is_sparse()) return gradient.detach();
  gradient = gradient.coalesce();
  return gradient._values().detach();
}

}  // namespace

void clip_norm(const std::vector<at::Tensor>& parameters, double max_norm) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    TORCH_CHECK_TYPE(
        !gradient.defined() || gradient.layout() == at::kStrided || gradient.is_sparse(),
        "[Trainer] clip_norm takes gradients that are dense or sparse (COO). Got ",
        gradient.layout(), " for a parameter of ", parameter.sizes());
  }
  std::vector<at::Tensor> values, norms;
  std::unordered_set<const at::TensorImpl*> seen;  // Module::parameters() lists a tied one twice
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second)
      continue;
    values.push_back(stored_values(parameter));
    norms.push_back(values.back().norm().to(values.front().device()));
  }
  if (values.empty()) return;
  const at::Tensor norm = norms.size() == 1 ? norms[0] : at::stack(norms).norm();
  const at::Tensor factor = at::clamp(max_norm / (norm + 1e-6), std::nullopt, 1.0);
  for (at::Tensor& value : values) value.mul_(factor.to(value.device(), /*non_blocking=*/true));
}

}  // namespace posenc::train
