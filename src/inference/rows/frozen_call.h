#pragma once

#include "core/torch_internals/call_threads.h"
#include "inference/rows/frozen_scope.h"

namespace posenc::inference {

/// What a call runs in that computes with a frozen model and beside it.
class FrozenCall {
 public:
  using Operations = torch_internals::Operations;

  explicit FrozenCall(const torch_internals::CallOptions& options,
                      Operations beside = Operations::Small)
      : threads_(options, beside) {}

 private:
  const FrozenScope scope_;
  const torch_internals::CallThreads threads_;
};

}  // namespace posenc::inference
