#pragma once

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <cstdint>

namespace posenc::torch_internals {

/// at::parallel_for for work that calls operations: they run with the grad mode, InferenceMode and
/// dispatch keys of the calling thread, which at::parallel_for does not carry into its threads.
template <typename Work>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const Work& work) {
  const at::ThreadLocalState caller;
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    const at::ThreadLocalStateGuard as_caller(caller);
    work(first, last);
  });
}

}  // namespace posenc::torch_internals
