#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/DimVector.h>
#include <torch/autograd.h>

#include <utility>

#include "core/torch_internals/backward_node.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "positions/functional/rotary/compose.h"
#include "positions/functional/rotary/fused.h"

namespace posenc::functional {
namespace {

// State shared by the backward nodes of q and k. The forward makes it, and it is never modified.
// The last node that holds it frees it, so the nodes can be run and released independently.
struct SavedRotation : c10::intrusive_ptr_target {
  SavedRotation(const RotaryPlan& plan, const RotaryOptions& o, const RotaryFuncOptions& h)
      : options(o),
        func_options(h),
        cos(torch_internals::save_for_backward(plan.cos)),
        sin(torch_internals::save_for_backward(plan.sin)) {}

  const RotaryOptions options;
  const RotaryFuncOptions func_options;
  const torch_internals::SavedVariable cos, sin;
};

struct RotaryBackward : torch_internals::BackwardNode {
  RotaryBackward(c10::intrusive_ptr<SavedRotation> rotation, const at::Tensor& x)
      : BackwardNode("RotaryBackward"),
        saved(std::move(rotation)),
        sizes(x.sizes()),
        dtype(x.scalar_type()) {}
  torch_internals::Gradients backward(const at::Tensor& grad) override;
  void release() override { saved.reset(); }

  at::Tensor composed(const at::Tensor& grad, const RotaryCosSin& table) const;

  c10::intrusive_ptr<SavedRotation> saved;  // null once released
  const c10::DimVector sizes;
  const at::ScalarType dtype;
};

// The gradient that autograd computes for the composition, which is linear. Can itself be
// differentiated.
at::Tensor RotaryBackward::composed(const at::Tensor& grad, const RotaryCosSin& table) const {
  const bool again = at::GradMode::is_enabled();
  const at::AutoGradMode recording(true);
  const at::Tensor x = at::zeros(sizes, grad.options().dtype(dtype)).requires_grad_();
  const at::Tensor y = rotated_heads(x, table, saved->options, saved->func_options);
  return torch::autograd::grad({y}, {x}, {grad}, /*retain_graph=*/again, /*create_graph=*/again)[0];
}

torch_internals::Gradients RotaryBackward::backward(const at::Tensor& grad) {
  const torch_internals::Profiled profiled("posenc::rotary_backward", grad);
  torch_internals::check_not_released(saved != nullptr);
  const RotaryCosSin table{saved->cos.unpack(), saved->sin.unpack()};
  const at::IntArrayRef expected = sizes;
  TORCH_CHECK(grad.sizes() == expected, "[rotary] backward needs a gradient ", expected, ". Got ",
              grad.sizes());
  RotaryPlan plan;
  if (!at::GradMode::is_enabled() && grad.scalar_type() == dtype) {
    const at::Tensor whole = grad.stride(-1) == 1 ? grad : grad.contiguous();
    if (is_fusable(whole, {}, table, saved->options, saved->func_options, Pass::Backward, plan))
      return {rotary_fused_backward(plan, whole, saved->func_options)};
  }
  return {composed(grad, table)};
}

}  // namespace

void record(const RotaryPlan& plan, const QueryKey& out, const at::Tensor& q, const at::Tensor& k,
            const RotaryOptions& options, const RotaryFuncOptions& func_options) {
  using torch_internals::is_recorded;
  const bool for_q = q.defined() && is_recorded(q), for_k = k.defined() && is_recorded(k);
  if (!for_q && !for_k) return;
  const auto saved = c10::make_intrusive<SavedRotation>(plan, options, func_options);
  const auto& [q_out, k_out] = out;
  if (for_q)
    torch_internals::set_history(q_out, torch_internals::make_node<RotaryBackward>(saved, q), q);
  if (for_k)
    torch_internals::set_history(k_out, torch_internals::make_node<RotaryBackward>(saved, k), k);
}

}  // namespace posenc::functional
