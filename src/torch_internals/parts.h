#pragma once

#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <cstdint>

#include "platform/helpers.h"

namespace posenc::torch_internals {

/// Who runs the loops of a call.
enum class Loops {
  Helpers,   ///< platform::helpers(): parts are taken by whoever is free
  LibTorch,  ///< at::parallel_for, in whose threads alone LibTorch's matrix products know that they
             ///< are inside a part
};

/// How a frozen model wants its calls to be run.
struct CallOptions {
  int64_t threads = 0;  ///< the most, if it is positive
  Loops loops = Loops::Helpers;
};

/// The threads of one call of a frozen model, for the calling thread and until the end of this
/// object. A call inside another has at most the threads of the outer one.
class CallThreads {
 public:
  /// At most at::get_num_threads(). LibTorch's own operations run in one thread where those of the
  /// call are on few `elements`: threads would wait for each other longer than they compute.
  CallThreads(const CallOptions& options, int64_t elements);
  ~CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  static constexpr int64_t kFewElements = int64_t{1} << 19;

 private:
  friend class CallersThreads;
  friend struct CurrentCall;

  CallThreads* const outer_;
  int before_;  // LibTorch's threads
  int most_;
  const Loops loops_;
};

/// Gives a callback the threads that its owner had before the call.
class CallersThreads {
 public:
  CallersThreads();
  ~CallersThreads();
  CallersThreads(const CallersThreads&) = delete;
  CallersThreads& operator=(const CallersThreads&) = delete;

 private:
  CallThreads* const call_;
  int within_ = 0;
};

/// The most threads that a loop may have here: one inside a part or an at::parallel_for.
int most_threads();
/// How many of these a loop may count on now, since other programs leave them a core.
int free_threads(int most);
/// Runs the parts on at most `most` threads.
void run_parts(const platform::Parts& parts, int most);

/// Runs f(i) for each i in [0, count), in any order, by whoever is free. As in at::parallel_for,
/// loops in f run in its thread, and the first exception of an f is thrown. f must not depend on
/// thread-local state, unless it sets it.
template <typename F>
void run_parts(int64_t count, const F& f) {
  const auto part = [](void* context, int64_t i) {
    const c10::ParallelGuard inside(true);
    (*static_cast<const F*>(context))(i);
  };
  run_parts({part, const_cast<F*>(&f), count}, most_threads());
}

/// at::parallel_for by run_parts(): f(first, last) for parts of [begin, end), of which there are a
/// few for each thread if they have `grain` or more.
template <typename F>
void parallel_parts(int64_t begin, int64_t end, int64_t grain, const F& f) {
  constexpr int64_t kPartsPerThread = 4;  // so that all are done at about the same time
  const int64_t count = end - begin;
  if (count <= 0) return;
  if (count <= grain) {
    const c10::ParallelGuard inside(true);
    return f(begin, end);
  }
  const int64_t threads = std::min<int64_t>(free_threads(most_threads()), count);
  const int64_t parts = threads == 1 ? 1
                                     : std::clamp(count / std::max<int64_t>(grain, 1), threads,
                                                  kPartsPerThread * threads);
  const int64_t size = (count + parts - 1) / parts;
  run_parts((count + size - 1) / size,
            [&](int64_t i) { f(begin + i * size, std::min(begin + (i + 1) * size, end)); });
}

}  // namespace posenc::torch_internals
