#include "core/torch_internals/post_accumulate_hook.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace posenc::torch_internals {
namespace {

namespace autograd = torch::autograd;

struct Calling final : autograd::PostAccumulateGradHook {
  explicit Calling(std::function<void()> function) : function(std::move(function)) {}
  void operator()(const autograd::Variable&) override { function(); }
  std::function<void()> function;
};

// Read without impl::post_acc_grad_hooks(), which requires that autograd has seen the tensor.
const autograd::PostAccumulateGradHook* hook_of(const at::Tensor& leaf) {
  const auto* const meta = autograd::impl::get_autograd_meta(leaf);
  return meta == nullptr ? nullptr : meta->post_acc_grad_hooks_.get();
}

}  // namespace

bool PostAccumulateHook::has_one(const at::Tensor& leaf) { return hook_of(leaf) != nullptr; }

PostAccumulateHook::PostAccumulateHook(const at::Tensor& leaf, std::function<void()> function)
    : leaf_(leaf) {
  auto hook = std::make_unique<Calling>(std::move(function));
  own_ = hook.get();
  autograd::impl::set_post_acc_grad_hooks(leaf, std::move(hook));
}

PostAccumulateHook::~PostAccumulateHook() {
  if (leaf_.defined() && hook_of(leaf_) == own_)
    autograd::impl::set_post_acc_grad_hooks(leaf_, nullptr);
}

}  // namespace posenc::torch_internals
