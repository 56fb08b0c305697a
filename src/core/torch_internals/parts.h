#pragma once

#include <c10/util/ParallelGuard.h>

#include <algorithm>
#include <cstdint>

#include "base/platform/helpers.h"
#include "core/torch_internals/call_threads.h"

namespace posenc::torch_internals {

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
