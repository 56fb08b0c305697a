#include "functional/rotary/backward.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/autograd.h>

#include <vector>

#include "functional/rotary/compose.h"
#include "functional/rotary/fusable.h"
#include "functional/rotary/fused.h"
#include "torch_internals/backward_node.h"
#include "torch_internals/profiled.h"

namespace posenc::functional {
namespace {

struct RotaryBackward : torch_internals::BackwardNode {
  RotaryBackward(const RotaryOptions& o, const RotaryFuncOptions& h)
      : BackwardNode("RotaryBackward"), options(o), how(h) {}
  torch_internals::Gradients backward(const at::Tensor& grad) override;
  void release() override {
    cos.reset_data();
    sin.reset_data();
  }

  at::Tensor composed(const at::Tensor& grad, const RotaryCosSin& table) const;

  RotaryOptions options;
  RotaryFuncOptions how;
  torch_internals::SavedVariable cos, sin;
  std::vector<int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
};

// What autograd does with the composition, at any point: it is linear. Differentiable once more.
at::Tensor RotaryBackward::composed(const at::Tensor& grad, const RotaryCosSin& table) const {
  const bool again = at::GradMode::is_enabled();
  const at::AutoGradMode recording(true);
  const at::Tensor x = at::zeros(sizes, grad.options().dtype(dtype)).requires_grad_();
  const at::Tensor y = rotated_heads(x, table, options, how);
  return torch::autograd::grad({y}, {x}, {grad}, /*retain_graph=*/again, /*create_graph=*/again)[0];
}

torch_internals::Gradients RotaryBackward::backward(const at::Tensor& grad) {
  const torch_internals::Profiled profiled("posenc::rotary_backward", grad);
  const RotaryCosSin table{cos.unpack(), sin.unpack()};
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
  auto node = torch_internals::make_node<RotaryBackward>(options, how);
  node->cos = torch_internals::save_for_backward(table.cos);
  node->sin = torch_internals::save_for_backward(table.sin);
  node->sizes = x.sizes().vec();
  node->dtype = x.scalar_type();
  torch_internals::set_history(out, std::move(node), x);
}

}  // namespace posenc::functional
