#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <mutex>

namespace posenc::torch_internals {

/// The .grad to which the gradient of a node's only output goes, for a node that adds to it itself
/// and then returns an undefined gradient. It is locked, as AccumulateGrad locks it, while this
/// lives.
///
/// False where somebody could tell the two apart, and the gradient has to be returned:
/// - it goes anywhere else than to a leaf that still requires a gradient of these sizes and type,
/// - the backward is not an ordinary one: grad(), inputs=, create_graph, anomaly detection, or a
///   call of the node without the engine,
/// - the leaf has other uses in this graph: their sum is made before it is added,
/// - somebody listens: hooks on the tensor or on its accumulator, post hooks on `node`.
class GradAccess {
 public:
  GradAccess(torch::autograd::Node& node, at::IntArrayRef sizes, at::ScalarType dtype);

  explicit operator bool() const { return accumulator_ != nullptr; }

  /// May be undefined: AccumulateGrad then takes the first gradient as it is, or a copy of it.
  at::Tensor& grad() const { return accumulator_->variable.mutable_grad(); }

  /// Whether a kernel may add to grad() row by row, while it reads `incoming`: a plain contiguous
  /// tensor of the sizes and type given, without a gradient of its own, in memory of its own.
  bool may_add_in_place(const at::Tensor& incoming) const;

 private:
  torch::autograd::AccumulateGrad* accumulator_ = nullptr;
  at::IntArrayRef sizes_;
  at::ScalarType dtype_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace posenc::torch_internals
