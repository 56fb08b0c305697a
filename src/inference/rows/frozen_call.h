#pragma once

#include "core/torch_internals/call_threads.h"
#include "inference/rows/frozen_scope.h"

namespace posenc::inference {

/// What a call runs in that computes with a frozen model and beside it.
class FrozenCall {
 public:
  static constexpr int64_t kMany = torch_internals::CallThreads::kFewElements;

  /// LibTorch's operations beside the model's own calls are on that number of `elements`.
  explicit FrozenCall(const torch_internals::CallOptions& options, int64_t elements = kMany)
      : threads_(options, elements) {}

 private:
  const FrozenScope scope_;
  const torch_internals::CallThreads threads_;
};

/// For operations beside the model, within a call: the same threads, or one for few elements.
class BesideModel {
 public:
  explicit BesideModel(int64_t elements) : threads_({}, elements) {}

 private:
  const torch_internals::CallThreads threads_;
};

}  // namespace posenc::inference
