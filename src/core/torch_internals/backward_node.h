#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <mutex>

#include "core/torch_internals/node_pointer.h"

namespace posenc::torch_internals {

/// A tensor kept for backward, which notices if it was changed in place meanwhile.
using SavedVariable = torch::autograd::SavedVariable;
/// One gradient for each input of a node.
using Gradients = torch::autograd::variable_list;

/// The backward of an operation with one output. A Node rather than an autograd::Function: it costs
/// a third as much, and can determine where its gradients go.
///
/// The engine may call a node from any thread, and may release it while it runs, so both are done
/// under the node's lock.
class BackwardNode : public torch::autograd::Node {
 public:
  Gradients apply(Gradients&& grads) final;
  std::string name() const final { return name_; }
  void release_variables() final;

 protected:
  /// `name`: as grad_fn->name() has it, a literal.
  explicit BackwardNode(const char* name) : name_(name) {}

  /// The gradients of all inputs, from that of the output; undefined where !wants().
  virtual Gradients backward(const at::Tensor& grad) = 0;
  /// Frees what was saved.
  virtual void release() = 0;

  /// Whether the gradient of input `i` is needed.
  bool wants(size_t i) const { return task_should_compute_output(i); }

 private:
  bool wants_any() const;

  const char* name_;
};

/// Saves an input for backward.
SavedVariable save_for_backward(const at::Tensor& input);

/// Saves the result of a node, of which set_output() has made the node the origin: to be unpacked
/// with its getptr().
SavedVariable save_result(const at::Tensor& result);

/// Throws PyTorch's error for a second backward unless `saved` has survived the first.
void check_not_released(bool saved);

/// Sends the gradients of `node` to `inputs`, some of which may be undefined.
void set_inputs(BackwardNode& node, at::ArrayRef<at::Tensor> inputs);
/// Sends the only gradient of `node` to another node, whose output was never a tensor of its own
/// but would have been like `like`.
void set_input(BackwardNode& node, NodePointer<BackwardNode> before, const at::Tensor& like);
/// Makes `node` the origin of `out`.
void set_output(NodePointer<BackwardNode> node, const at::Tensor& out);
/// Records that `node` made `out` from `inputs`.
void set_history(const at::Tensor& out, NodePointer<BackwardNode> node,
                 at::ArrayRef<at::Tensor> inputs);

}  // namespace posenc::torch_internals
