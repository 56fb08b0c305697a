#include "core/torch_internals/grad_access.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/graph_task.h>

#include "core/torch_internals/shortcut.h"

namespace posenc::torch_internals {
namespace {

namespace autograd = torch::autograd;

// Accesses a protected member of every node.
struct Lock : autograd::Node {
  static std::mutex& of(autograd::Node& node) { return node.*(&Lock::mutex_); }
};

// backward() without inputs=: only then is the engine's exec_info empty.
bool is_ordinary_backward() {
  const auto* const requested = autograd::get_current_graph_task_exec_info();
  return requested != nullptr && requested->empty() && !at::GradMode::is_enabled() &&
         !autograd::AnomalyMode::is_enabled();
}

bool has_listeners(autograd::AccumulateGrad& accumulator) {
  return !accumulator.pre_hooks().empty() || !accumulator.post_hooks().empty() ||
         !accumulator.tensor_pre_hooks().empty() || !accumulator.retains_grad_hooks().empty() ||
         (!kHooksFollowUndefinedGradients && accumulator.tensor_post_acc_grad_hooks() != nullptr);
}

// The engine compares what a node returns with the leaf as it was when the accumulator was made;
// AccumulateGrad compares it with the leaf as it is now.
bool takes(const autograd::AccumulateGrad& accumulator, at::IntArrayRef sizes,
           at::ScalarType dtype) {
  const autograd::InputMetadata& then = accumulator.input_metadata(0);
  const at::Tensor& now = accumulator.variable;
  return now.is_leaf() && now.requires_grad() && now.sizes() == sizes &&
         now.scalar_type() == dtype && is_plain(now) && then.grad_dtype() == dtype &&
         then.device().is_cpu() &&
         then.shape_as_dim_vector().equals(c10::fromIntArrayRefSlow(sizes));
}

}  // namespace

GradAccess::GradAccess(autograd::Node& node, at::IntArrayRef sizes, at::ScalarType dtype) {
  const autograd::Edge& edge = node.next_edge(0);
  auto* const accumulator = dynamic_cast<autograd::AccumulateGrad*>(edge.function.get());
  if (accumulator == nullptr || edge.function.use_count() != 1 || !is_ordinary_backward() ||
      !node.post_hooks().empty() || has_listeners(*accumulator))
    return;
  std::unique_lock<std::mutex> lock(Lock::of(*accumulator));
  if (!takes(*accumulator, sizes, dtype)) return;
  accumulator_ = accumulator;
  lock_ = std::move(lock);
}

bool GradAccess::may_add_in_place(const at::Tensor& incoming) const {
  const at::Tensor &sum = grad(), &leaf = accumulator_->variable;
  return sum.defined() && is_plain(sum) && sum.sizes() == leaf.sizes() &&
         sum.scalar_type() == leaf.scalar_type() && sum.is_contiguous() && !sum.requires_grad() &&
         write_violation(sum) == nullptr && !share_memory(sum, incoming);
}

}  // namespace posenc::torch_internals
