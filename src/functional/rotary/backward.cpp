#include "functional/rotary/backward.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <vector>

#include "functional/rotary/compose.h"
#include "functional/rotary/fusable.h"
#include "functional/rotary/fused.h"
#include "torch_internals/profiled.h"

namespace posenc::functional {
namespace {

namespace autograd = torch::autograd;

struct RotaryBackward : autograd::Node {
  RotaryBackward(const RotaryOptions& o, const RotaryFuncOptions& h) : options(o), how(h) {}
  autograd::variable_list apply(autograd::variable_list&& grads) override;
  std::string name() const override { return "RotaryBackward"; }
  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    cos.reset_data();
    sin.reset_data();
  }

  at::Tensor composed(const at::Tensor& grad, const RotaryCosSin& table) const;

  RotaryOptions options;
  RotaryFuncOptions how;
  autograd::SavedVariable cos, sin;
  std::vector<int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
};

// What autograd does with the composition, at any point: it is linear. Differentiable once more.
at::Tensor RotaryBackward::composed(const at::Tensor& grad, const RotaryCosSin& table) const {
  const bool again = at::GradMode::is_enabled();
  const at::AutoGradMode recording(true);
  const at::Tensor x = at::zeros(sizes, grad.options().dtype(dtype)).requires_grad_();
  const at::Tensor y = rotated_heads(x, table, options, how);
  return autograd::grad({y}, {x}, {grad}, /*retain_graph=*/again, /*create_graph=*/again)[0];
}

autograd::variable_list RotaryBackward::apply(autograd::variable_list&& grads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!grads[0].defined() || !task_should_compute_output(0)) return {at::Tensor()};
  const torch_internals::Profiled profiled("posenc::rotary_backward", grads[0]);
  const RotaryCosSin table{cos.unpack(), sin.unpack()};
  const at::Tensor& grad = grads[0];
  const at::IntArrayRef expected = sizes;
  TORCH_CHECK(grad.sizes() == expected, "[rotary] backward needs a gradient ", expected, ". Got ",
              grad.sizes());
  RotaryPlan plan;
  if (!at::GradMode::is_enabled() && grad.scalar_type() == dtype) {
    const at::Tensor whole = grad.stride(-1) == 1 ? grad : grad.contiguous();
    if (is_fusable(whole, {}, table, options, how, Pass::Backward, plan))
      return {rotary_fused_backward(plan, whole, how)};
  }
  return {composed(grad, table)};
}

}  // namespace

void record(const at::Tensor& out, const at::Tensor& x, const RotaryCosSin& table,
            const RotaryOptions& options, const RotaryFuncOptions& how) {
  auto node = c10::make_intrusive<RotaryBackward>(options, how);
  node->set_next_edges(autograd::collect_next_edges(x));
  node->cos = autograd::SavedVariable(table.cos, /*is_output=*/false);
  node->sin = autograd::SavedVariable(table.sin, /*is_output=*/false);
  node->sizes = x.sizes().vec();
  node->dtype = x.scalar_type();
  autograd::set_history(out, node);
}

}  // namespace posenc::functional
