#pragma once

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// RAII guard: posenc's modules constructed on this thread while it is alive leave their weights
/// uninitialised. Use it when a checkpoint will overwrite them anyway.
///
/// Source: torch.nn.utils.skip_init.
class SkipInit {
 public:
  SkipInit() noexcept { ++depth(); }
  ~SkipInit() { --depth(); }
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;

  /// Whether a guard is alive on this thread.
  static bool is_active() noexcept { return depth() > 0; }

 private:
  static int& depth() noexcept {
    thread_local int count = 0;
    return count;
  }
};

}  // namespace posenc
