#pragma once

namespace posenc {

/// While one lives, posenc's modules that this thread makes leave their weights as the memory is
/// found: for a checkpoint that is going to be loaded, random numbers are time and pages for
/// nothing. PyTorch's torch.nn.utils.skip_init, for a scope.
class SkipInit {
 public:
  SkipInit() noexcept { ++depth(); }
  ~SkipInit() { --depth(); }
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;

  static bool is_active() noexcept { return depth() > 0; }

 private:
  static int& depth() noexcept {
    thread_local int count = 0;
    return count;
  }
};

}  // namespace posenc
