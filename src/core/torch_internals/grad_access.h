#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <mutex>

#include "core/torch_internals/torch_version.h"

namespace posenc::torch_internals {

/// Whether AccumulateGrad is relied on to call post-accumulate hooks for an undefined gradient.
inline constexpr bool kHooksFollowUndefinedGradients = POSENC_TORCH_AT_LEAST(2, 13);

/// Access to the .grad that receives a backward node's only gradient, for a node that adds to it
/// itself and then returns an undefined gradient. Locked, as by AccumulateGrad, for the lifetime of
/// this object.
///
/// Converts to false if the difference could be observed, in which case the node has to return the
/// gradient:
/// - the gradient does not go to a leaf that still requires one of these sizes and this type,
/// - the backward is not an ordinary one: grad(), inputs=, create_graph, anomaly detection, or a
///   call of the node outside the engine,
/// - the leaf has other uses in this graph: their gradients are summed before they are added,
/// - there are hooks on the tensor or on its accumulator, or post hooks on `node`. Post-accumulate
///   hooks, in which DataParallel exchanges gradients, are allowed if AccumulateGrad calls them for
///   an undefined gradient as well: they see the sum.
class GradAccess {
 public:
  GradAccess(torch::autograd::Node& node, at::IntArrayRef sizes, at::ScalarType dtype);

  explicit operator bool() const { return accumulator_ != nullptr; }

  /// May be undefined: AccumulateGrad then takes the first gradient itself, or a copy of it.
  at::Tensor& grad() const { return accumulator_->variable.mutable_grad(); }

  /// Whether a kernel may add to grad() row by row while it reads `incoming`: grad() must be a
  /// plain contiguous tensor of the leaf's sizes and type that requires no gradient and shares no
  /// memory with it.
  bool may_add_in_place(const at::Tensor& incoming) const;

 private:
  torch::autograd::AccumulateGrad* accumulator_ = nullptr;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace posenc::torch_internals
