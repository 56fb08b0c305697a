#include "core/torch_internals/parts.h"

#include <ATen/Parallel.h>

namespace posenc::torch_internals {

namespace {

thread_local bool is_inside_part = false;

// While a part runs, LibTorch's operations in it run in its thread.
class InsidePart {
 public:
  InsidePart() : before_(exchange_threads({1, 1})) { is_inside_part = true; }
  ~InsidePart() {
    is_inside_part = false;
    exchange_threads(before_);
  }
  InsidePart(const InsidePart&) = delete;
  InsidePart& operator=(const InsidePart&) = delete;

 private:
  const LibTorchThreads before_;
};

}  // namespace

int most_threads() { return is_inside_part || at::in_parallel_region() ? 1 : CallThreads::most(); }

int free_threads(int most) {
  return most == 1 || CallThreads::is_libtorchs() ? most : platform::helpers().threads(most);
}

void run_parts(const platform::Parts& parts, int most) {
  if (most == 1 || parts.count == 0) {
    for (int64_t i = 0; i < parts.count; ++i) parts.part(parts.context, i);
  } else if (CallThreads::is_libtorchs()) {
    at::parallel_for(0, parts.count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) parts.part(parts.context, i);
    });
  } else {
    const auto part = [](void* context, int64_t i) {
      const InsidePart inside;
      const auto& own = *static_cast<const platform::Parts*>(context);
      own.part(own.context, i);
    };
    platform::helpers().run({part, const_cast<platform::Parts*>(&parts), parts.count}, most);
  }
}

}  // namespace posenc::torch_internals
