#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>
#include <shared_mutex>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A shared mutex that a copyable class can have as a member. Each copy gets a new, unlocked mutex,
/// because the data that it guards are copied as well.
class GrowthLock : public std::shared_mutex {
 public:
  GrowthLock() = default;
  GrowthLock(const GrowthLock&) {}                            ///< unlocked
  GrowthLock& operator=(const GrowthLock&) { return *this; }  ///< unchanged
};

/// Keeps the tensor that a module returned last, for reuse when no one else holds it any more. Its
/// pages are already mapped, and touching new pages for the first time costs more than computing
/// what is written to them. Copies start empty. Thread-safe.
class LastOutput {
 public:
  LastOutput() = default;
  LastOutput(const LastOutput&) {}                            ///< empty
  LastOutput& operator=(const LastOutput&) { return *this; }  ///< unchanged

  /// Removes and returns the kept tensor if it is contiguous, has these sizes and this type, and
  /// neither it nor its memory has another holder; otherwise returns an undefined tensor.
  at::Tensor take(at::IntArrayRef sizes, at::ScalarType dtype);
  /// Keeps `output` in place of any earlier tensor.
  void keep(const at::Tensor& output);

 private:
  std::mutex mutex_;
  at::Tensor tensor_;
};

}  // namespace posenc
