// The rules for shortcuts past ATen.
//
// A shortcut reads or writes tensors through pointers where LibTorch would call an operation. What
// it bypasses does more than arithmetic: the dispatcher, ADInplaceOrView, the autograd engine,
// AccumulateGrad, the allocator and the profiler. So each shortcut of this library keeps the rules
// below, by means of the functions of this folder, or leaves the call to ATen:
//
// 1. Dispatch. The thread dispatches as usual and each tensor is plain: dispatches_plainly(),
//    is_plain(). Otherwise a trace, autocast, a transform or a subclass would miss the operation.
// 2. Memory. Sizes, strides, type and device are checked on the very tensors that the kernel is
//    about to touch, and values that become addresses (ids) are checked against their range in the
//    same call. What an earlier call checked may since have been resized or refilled, so a backward
//    checks again.
// 3. Writing to a tensor that others can see. Before the first byte is written, write_violation()
//    names what ATen would refuse; note_write() refuses it and notifies autograd. Memory that the
//    kernel reads while it writes must not overlap: share_memory().
// 4. Recording. is_recorded() returns whether autograd would record. The result then gets a node
//    that keeps the caller's tensors as SavedVariables, which notice changes; backward may be
//    called by another thread, twice, with create_graph, or with a gradient of another layout.
// 5. Adding to .grad. Only through GradAccess (grad_access.h), which makes all the checks that
//    AccumulateGrad and the engine make.
// 6. Reusing the memory of an earlier result. Only if is_unobservable(): no one else holds the
//    tensor, and it is indistinguishable from a new one.
// 7. New memory comes from c10's allocator, or is resizable and has its size reported to c10.
// 8. The profiler sees the work: a Profiled (profiled.h) lives for as long as it takes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace posenc::torch_internals {

/// Whether this thread dispatches as usual: no tracing, no autocast, no transform, no mode.
bool dispatches_plainly();

/// Whether ATen would use the plain CPU kernels for `tensor`: no subclass, no transform, no lazy
/// conjugation or negation, no forward-mode gradient.
bool is_plain(const at::Tensor& tensor);

/// Whether autograd would record an operation on `tensor` in this thread.
bool is_recorded(const at::Tensor& tensor);

/// The name of the operation that computed `tensor`, which is not a leaf, as in grad_fn.
std::string origin_of(const at::Tensor& tensor);

/// The rule that `tensor` breaks if this thread writes to it without recording that, such as "must
/// not ..."; null if it may be written.
const char* write_violation(const at::Tensor& tensor);

/// Call this before a kernel writes to `tensor`. Increments its version, so that a backward that
/// saved it, and anything else that compares versions, detects the write. Throws c10::Error if
/// write_violation() names a rule.
void note_write(const at::Tensor& tensor);

/// The addresses from a tensor's first element to the end of its last one.
struct MemoryExtent {
  uintptr_t begin = 0, end = 0;
};
/// Both are 0 for a tensor that is undefined, empty or without a storage.
MemoryExtent extent_of(const at::Tensor& tensor);

/// Whether the ranges from first to last element overlap; false for a tensor that is undefined,
/// empty or without a storage.
bool share_memory(const at::Tensor& a, const at::Tensor& b);

/// Whether `tensor`, of which the caller has the only handle, is indistinguishable from a new one.
bool is_unobservable(const at::Tensor& tensor);

}  // namespace posenc::torch_internals
