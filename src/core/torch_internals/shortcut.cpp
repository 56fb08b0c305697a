#include "core/torch_internals/shortcut.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>

namespace posenc::torch_internals {
namespace {

using Key = c10::DispatchKey;

constexpr c10::DispatchKeySet kPlainTensor({Key::CPU, Key::AutogradCPU, Key::ADInplaceOrView,
                                            Key::AutocastCPU});

bool within(c10::DispatchKeySet keys, c10::DispatchKeySet all) { return (keys | all) == all; }

// _fw_grad() locks a mutex of the tensor, a tenth of the time of embedding a token, so it is called
// only if there may be a forward gradient: its holder is allocated when the first one is set. A
// view's is made on request, from that of its base.
bool has_forward_gradient(const at::Tensor& tensor) {
  const auto* const meta = static_cast<const torch::autograd::AutogradMeta*>(
      tensor.unsafeGetTensorImpl()->autograd_meta());
  return meta != nullptr && (meta->fw_grad_ != nullptr || meta->is_view_) &&
         tensor._fw_grad(/*level=*/0).defined();
}

}  // namespace

bool dispatches_plainly() {
  const auto local = c10::impl::tls_local_dispatch_key_set();
  return within(local.included_, c10::default_included_set) &&
         within(c10::default_excluded_set, local.excluded_);
}

bool is_plain(const at::Tensor& tensor) {
  return within(tensor.key_set(), kPlainTensor) && !has_forward_gradient(tensor);
}

bool is_recorded(const at::Tensor& tensor) {
  return tensor.requires_grad() && at::GradMode::is_enabled() &&
         !c10::impl::tls_local_dispatch_key_set().excluded_.has(Key::AutogradFunctionality);
}

// Before 2.13, tensors only declare the class of their grad_fn().
std::string origin_of(const at::Tensor& tensor) { return tensor.grad_fn()->name(); }

const char* write_violation(const at::Tensor& tensor) {
  if (tensor.is_inference() && !c10::InferenceMode::is_enabled())
    return "must not be an inference tensor outside InferenceMode";
  if (tensor.requires_grad() && at::GradMode::is_enabled())
    return "must not require a gradient while gradients are recorded";
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
    return "must have each element in a place of its own";
  return nullptr;
}

void note_write(const at::Tensor& tensor) {
  const char* const rule = write_violation(tensor);
  TORCH_CHECK(rule == nullptr, "a tensor that is written ", rule);
  tensor.unsafeGetTensorImpl()->bump_version();
}

MemoryExtent extent_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || tensor.numel() == 0) return {};
  int64_t elements = 1;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis) {
    elements += (tensor.size(axis) - 1) * tensor.stride(axis);
  }
  const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  return {begin, begin + static_cast<uintptr_t>(elements) * tensor.element_size()};
}

bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  const MemoryExtent first = extent_of(a), second = extent_of(b);
  return first.end > second.begin && second.end > first.begin;
}

// A tensor with autograd metadata has had a gradient, a hook or a view's base; one with a Python
// object may have attributes; a storage may have been shrunk.
bool is_unobservable(const at::Tensor& tensor) {
  const c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  return tensor.use_count() == 1 && tensor.getIntrusivePtr().weak_use_count() == 1 &&
         tensor.storage().use_count() == 1 && impl->autograd_meta() == nullptr &&
         impl->pyobj_slot()->load_pyobj() == nullptr && is_plain(tensor) &&
         tensor.storage_offset() == 0 && tensor.storage().nbytes() >= tensor.nbytes();
}

}  // namespace posenc::torch_internals
