// What a shortcut has to check.
//
// A shortcut reads or writes tensors by pointer where LibTorch would call an operation. What it
// goes around does more than arithmetic: the dispatcher, ADInplaceOrView, the autograd engine,
// AccumulateGrad, the allocator and the profiler. So each shortcut of this library keeps the rules
// below, by the functions of this folder, or leaves the call to ATen:
//
// 1. Dispatch. The thread dispatches as usual, and each tensor is a plain one:
// dispatches_plainly(),
//    is_plain(). If not, a trace, autocast, a transform or a subclass would miss the operation.
// 2. Memory. Sizes, strides, type and device are compared on the tensors that the kernel is about
// to
//    touch, and values that become addresses (ids) are compared with their range in the same call.
//    What an earlier call has checked may have been resized or refilled: a backward checks again.
// 3. Writing to a tensor that somebody else can see. Before its first byte: no_writing_to() names
//    what ATen would refuse, note_write() refuses it and notifies autograd. Memory that the kernel
//    reads while it writes lies elsewhere: share_memory().
// 4. Recording. is_recorded() says whether autograd would. The result then gets a node, what
//    backward reads of the caller's is a SavedVariable, which notices changes, and backward may be
//    called by another thread, twice, with create_graph, or with a gradient of another layout.
// 5. Adding to .grad. Only through GradAccess (grad_access.h), which asks all that AccumulateGrad
//    and the engine ask.
// 6. Handing out memory once more. Only if is_as_new(): nobody holds the tensor, and it has no
// past.
// 7. New memory comes from c10's allocator; or it can be resized and its size is reported there.
// 8. The profiler sees it: a Profiled (profiled.h) lives as long as the work takes.
#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::torch_internals {

/// Whether this thread dispatches as usual: no tracing, no autocast, no transform, no mode.
bool dispatches_plainly();

/// Whether ATen would take the plain CPU kernels for `tensor`: no subclass, no transform, no view
/// that is to be conjugated or negated, no forward-mode gradient.
bool is_plain(const at::Tensor& tensor);

/// Whether autograd would record an operation on `tensor` in this thread.
bool is_recorded(const at::Tensor& tensor);

/// The rule that `tensor` breaks if this thread writes to it without a record, such as "must not
/// ..."; null if it may be written.
const char* no_writing_to(const at::Tensor& tensor);

/// To be called before a kernel writes to `tensor`: moves its version on, so that a backward that
/// saved it, and whoever else compares versions, notices. Throws c10::Error where no_writing_to()
/// has a rule.
void note_write(const at::Tensor& tensor);

/// Whether the ranges from first to last element overlap; false for a tensor
/// that is undefined, empty or without a storage.
bool share_memory(const at::Tensor& a, const at::Tensor& b);

/// Whether nobody but the caller, who has one handle, could tell `tensor` from a new one.
bool is_as_new(const at::Tensor& tensor);

}  // namespace posenc::torch_internals
