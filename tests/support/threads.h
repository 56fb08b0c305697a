#pragma once

#include <ATen/Parallel.h>

namespace posenc::testing {

/// Sets the number of threads and restores the old one in the destructor.
class Threads {
 public:
  explicit Threads(int n) : before_(at::get_num_threads()) { at::set_num_threads(n); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace posenc::testing
