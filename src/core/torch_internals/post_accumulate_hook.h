#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace torch::autograd {
struct PostAccumulateGradHook;
}

namespace posenc::torch_internals {

/// Calls a function in each backward pass that reaches a leaf: once, after the gradients of all its
/// uses are added to its .grad, also if they were undefined. Exceptions of the function leave
/// backward() as they are.
///
/// A tensor has a single slot for such hooks, which Python's
/// register_post_accumulate_grad_hook uses too. The destructor empties it unless another hook has
/// replaced this one.
class PostAccumulateHook {
 public:
  /// Whether `leaf` has a hook of any kind; setting another would drop it.
  static bool has_one(const at::Tensor& leaf);

  PostAccumulateHook(const at::Tensor& leaf, std::function<void()> function);
  PostAccumulateHook(PostAccumulateHook&& other) noexcept = default;
  PostAccumulateHook& operator=(PostAccumulateHook&&) = delete;
  ~PostAccumulateHook();

 private:
  at::Tensor leaf_;  // undefined after a move
  const torch::autograd::PostAccumulateGradHook* own_;
};

}  // namespace posenc::torch_internals
