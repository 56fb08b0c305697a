#pragma once

#include <ATen/autocast_mode.h>

namespace posenc::testing {

/// Autocast is on, in bfloat16 on the CPU, while this exists.
class Autocast {
 public:
  Autocast() { at::autocast::set_autocast_enabled(at::kCPU, true); }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

}  // namespace posenc::testing
