#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>

#include <optional>
#include <unordered_set>
#include <vector>

#include "posenc/train/clip_grad_norm.h"
#include "train/parallel/gradient_exchange.h"

namespace posenc {
namespace parallel {
namespace {

// The values that a gradient stores. A sparse gradient is coalesced first: its values are then all
// of its nonzero elements. LibTorch's mul_() on `grad.data()` would scale a copy of them.
at::Tensor stored_values(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.is_sparse()) return gradient.detach();
  gradient = gradient.coalesce();
  return gradient._values().detach();
}

// float16 ends at 65,504, which the norm of a gradient of modest elements exceeds.
at::Tensor norm_of(const at::Tensor& values) {
  return values.scalar_type() == at::kHalf ? values.norm(2, at::kFloat) : values.norm();
}

at::Tensor total_norm(const std::vector<at::Tensor>& norms, at::Device device) {
  if (norms.empty()) return at::zeros({}, at::TensorOptions(at::kFloat).device(device));
  return norms.size() == 1 ? norms.front() : at::stack(norms).norm();
}

void check_layouts(const std::vector<at::Tensor>& parameters, const char* caller) {
  for (const at::Tensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.grad();
    TORCH_CHECK_TYPE(
        !gradient.defined() || gradient.layout() == at::kStrided || gradient.is_sparse(), "[",
        caller, "] gradients must be dense or sparse (COO). Got ", gradient.layout(),
        " for a parameter of ", parameter.sizes());
  }
}

}  // namespace

at::Tensor clip_norm(const torch::nn::Module& module, double max_norm, const char* caller) {
  const at::NoGradGuard no_grad;
  const auto parameters = module.parameters();
  check_layouts(parameters, caller);
  const at::Device device = parameters.empty() ? at::kCPU : parameters.front().device();
  std::vector<at::Tensor> values, norms;
  std::unordered_set<const at::TensorImpl*> seen;  // Module::parameters() lists a tied one twice
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined() || !seen.insert(parameter.unsafeGetTensorImpl()).second)
      continue;
    values.push_back(stored_values(parameter));
    norms.push_back(norm_of(values.back()).to(device));
  }
  const at::Tensor norm = total_norm(norms, device);
  const at::Tensor factor = at::clamp(max_norm / (norm + 1e-6), std::nullopt, 1.0);
  // The host may read what it is sent only after a wait.
  for (at::Tensor& value : values)
    value.mul_(factor.to(value.device(), /*non_blocking=*/!value.is_cpu()));
  return norm;
}

}  // namespace parallel

double clip_grad_norm(const ModuleRef& module, double max_norm) {
  TORCH_CHECK_VALUE(max_norm > 0.0, "[clip_grad_norm] max_norm must be positive. Got ", max_norm);
  return parallel::clip_norm(*module, max_norm, "clip_grad_norm").item<double>();
}

}  // namespace posenc
