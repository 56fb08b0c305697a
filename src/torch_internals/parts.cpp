#include "torch_internals/parts.h"

#include <ATen/Parallel.h>
#include <omp.h>

namespace posenc::torch_internals {

struct CurrentCall {
  static CallThreads*& get() {
    static thread_local CallThreads* call = nullptr;
    return call;
  }
  static int most() {
    const CallThreads* const call = get();
    return call != nullptr ? call->most_ : at::get_num_threads();
  }
  static bool is_libtorchs() {
    const CallThreads* const call = get();
    return call != nullptr && call->loops_ == Loops::LibTorch;
  }
};

CallThreads::CallThreads(const CallOptions& options, int64_t elements)
    : outer_(CurrentCall::get()),
      before_(at::get_num_threads()),
      most_(CurrentCall::most()),
      loops_(options.loops) {
  if (options.threads > 0) most_ = static_cast<int>(std::min<int64_t>(options.threads, most_));
  const bool is_few = loops_ == Loops::Helpers && elements < kFewElements;
  omp_set_num_threads(is_few ? 1 : most_);
  CurrentCall::get() = this;
}

CallThreads::~CallThreads() {
  CurrentCall::get() = outer_;
  omp_set_num_threads(before_);
}

CallersThreads::CallersThreads() : call_(CurrentCall::get()) {
  if (call_ == nullptr) return;
  const CallThreads* outermost = call_;
  while (outermost->outer_ != nullptr) outermost = outermost->outer_;
  within_ = at::get_num_threads();
  omp_set_num_threads(outermost->before_);
  CurrentCall::get() = nullptr;
}

CallersThreads::~CallersThreads() {
  if (call_ == nullptr) return;
  CallThreads* outermost = call_;
  while (outermost->outer_ != nullptr) outermost = outermost->outer_;
  outermost->before_ = at::get_num_threads();  // which the callback may have set
  omp_set_num_threads(within_);
  CurrentCall::get() = call_;
}

namespace {

thread_local bool is_inside_part = false;

// While a part runs, LibTorch's operations in it run in its thread.
class InsidePart {
 public:
  InsidePart() : before_(at::get_num_threads()) {  // in a new thread this sets the number first
    omp_set_num_threads(1);
    is_inside_part = true;
  }
  ~InsidePart() {
    is_inside_part = false;
    omp_set_num_threads(before_);
  }
  InsidePart(const InsidePart&) = delete;
  InsidePart& operator=(const InsidePart&) = delete;

 private:
  const int before_;
};

}  // namespace

int most_threads() { return is_inside_part || at::in_parallel_region() ? 1 : CurrentCall::most(); }

int free_threads(int most) {
  return most == 1 || CurrentCall::is_libtorchs() ? most : platform::helpers().threads(most);
}

void run_parts(const platform::Parts& parts, int most) {
  if (most == 1 || parts.count == 0) {
    for (int64_t i = 0; i < parts.count; ++i) parts.part(parts.context, i);
  } else if (CurrentCall::is_libtorchs()) {
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
