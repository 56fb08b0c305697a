#include "core/torch_internals/backward_node.h"

#include <torch/csrc/autograd/functions/utils.h>

namespace posenc::torch_internals {

Gradients BackwardNode::apply(Gradients&& grads) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!grads[0].defined() || !wants_any()) return Gradients(num_outputs());
  return backward(grads[0]);
}

bool BackwardNode::wants_any() const {
  for (size_t i = 0; i < num_outputs(); ++i)
    if (wants(i)) return true;
  return false;
}

void BackwardNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  release();
}

SavedVariable save_for_backward(const at::Tensor& input) {
  return SavedVariable(input, /*is_output=*/false);
}

SavedVariable save_result(const at::Tensor& result) {
  return SavedVariable(result, /*is_output=*/true);
}

void check_not_released(bool saved) { TORCH_CHECK(saved, torch::autograd::ERR_BACKWARD_TWICE); }

void set_inputs(BackwardNode& node, at::ArrayRef<at::Tensor> inputs) {
  torch::autograd::edge_list edges;
  edges.reserve(inputs.size());
  for (const at::Tensor& input : inputs)
    edges.push_back(input.defined() ? torch::autograd::impl::gradient_edge(input)
                                    : torch::autograd::Edge());
  node.set_next_edges(std::move(edges));
}

void set_input(BackwardNode& node, NodePointer<BackwardNode> before, const at::Tensor& like) {
  const uint32_t result = before->add_input_metadata(like);
  node.add_next_edge({std::move(before), result});
}

void set_output(NodePointer<BackwardNode> node, const at::Tensor& out) {
  torch::autograd::set_history(out, std::move(node));
}

void set_history(const at::Tensor& out, NodePointer<BackwardNode> node,
                 at::ArrayRef<at::Tensor> inputs) {
  set_inputs(*node, inputs);
  set_output(std::move(node), out);
}

}  // namespace posenc::torch_internals
