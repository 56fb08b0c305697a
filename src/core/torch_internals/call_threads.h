#pragma once

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <cstdint>

// The threads of one call of a frozen model. Inline: posenc::text has calls of its own.

/// Of MKL, where LibTorch has it: the threads of its products in the calling thread, which come
/// before those that at::set_num_threads() sets for the process; 0: these. Returns those before.
extern "C" int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));

namespace posenc::torch_internals {

/// Who runs the loops of a call.
enum class Loops {
  Helpers,   ///< platform::helpers(): parts are taken by whoever is free
  LibTorch,  ///< at::parallel_for, in whose threads alone LibTorch's matrix products know that they
             ///< are inside a part
};

/// How much of a call LibTorch's own operations are: little (copies, masks, pooling) or much of it.
enum class Operations { Small, Large };

/// How a frozen model wants its calls to be run.
struct CallOptions {
  int64_t threads = 0;  ///< the most, if it is positive
  Loops loops = Loops::Helpers;
};

/// The threads of LibTorch's operations in the calling thread.
struct LibTorchThreads {
  int openmp;  ///< at::get_num_threads()
  int mkl;     ///< 0: those of the process
};

/// Returns those before. In a new thread LibTorch sets its own number before the first loop: each
/// library that loops has a flag for that, LibTorch's in at::get_num_threads(), this one's below.
inline LibTorchThreads exchange_threads(LibTorchThreads threads) {
  const int openmp = at::get_num_threads();
  at::internal::lazy_init_num_threads();
  omp_set_num_threads(threads.openmp);
  const bool has_mkl = MKL_Set_Num_Threads_Local != nullptr;
  return {openmp, has_mkl ? MKL_Set_Num_Threads_Local(threads.mkl) : 0};
}

/// The threads of one call of a frozen model, for the calling thread and until the end of this
/// object. A call inside another has at most the threads of the outer one.
class CallThreads {
 public:
  /// At most at::get_num_threads(). Small operations of LibTorch run in one thread beside helpers:
  /// OpenMP's threads spin for some milliseconds after each, on the processors of the helpers.
  explicit CallThreads(const CallOptions& options, Operations operations = Operations::Small)
      : outer_(current()), most_(most()), loops_(options.loops) {
    if (options.threads > 0) most_ = static_cast<int>(std::min<int64_t>(options.threads, most_));
    const int own = loops_ == Loops::Helpers && operations == Operations::Small ? 1 : most_;
    before_ = exchange_threads({own, own});
    current() = this;
  }
  ~CallThreads() {
    current() = outer_;
    exchange_threads(before_);
  }
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

  /// The most threads of the innermost call, or outside of one at::get_num_threads().
  static int most() { return current() != nullptr ? current()->most_ : at::get_num_threads(); }
  /// Whether it leaves its loops to LibTorch.
  static bool is_libtorchs() {
    return current() != nullptr && current()->loops_ == Loops::LibTorch;
  }

 private:
  friend class CallersThreads;

  static CallThreads*& current() {
    static thread_local CallThreads* call = nullptr;
    return call;
  }

  CallThreads* const outer_;
  int most_;
  const Loops loops_;
  LibTorchThreads before_ = {};
};

/// Gives a callback the threads that its owner had before the call.
class CallersThreads {
 public:
  CallersThreads() : call_(CallThreads::current()) {
    if (call_ == nullptr) return;
    within_ = exchange_threads(outermost().before_);
    CallThreads::current() = nullptr;
  }
  ~CallersThreads() {
    if (call_ == nullptr) return;
    outermost().before_ = exchange_threads(within_);  // which the callback may have set
    CallThreads::current() = call_;
  }
  CallersThreads(const CallersThreads&) = delete;
  CallersThreads& operator=(const CallersThreads&) = delete;

 private:
  CallThreads& outermost() const {
    CallThreads* call = call_;
    while (call->outer_ != nullptr) call = call->outer_;
    return *call;
  }

  CallThreads* const call_;
  LibTorchThreads within_ = {};
};

}  // namespace posenc::torch_internals
