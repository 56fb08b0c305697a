#pragma once

#include <ATen/Parallel.h>
#include <omp.h>

#include <cstdint>

namespace posenc {

/// Until its end, ATen opens no parallel region in this thread if the work is on few numbers: a
/// region would take longer than the operation. Other threads are not affected.
class OneThreadIfFew {
 public:
  explicit OneThreadIfFew(int64_t numbers) : before_(at::get_num_threads()) {
    if (numbers < kFew) omp_set_num_threads(1);
  }
  ~OneThreadIfFew() { omp_set_num_threads(before_); }
  OneThreadIfFew(const OneThreadIfFew&) = delete;
  OneThreadIfFew& operator=(const OneThreadIfFew&) = delete;

 private:
  static constexpr int64_t kFew = 1 << 16;
  int before_;
};

}  // namespace posenc
