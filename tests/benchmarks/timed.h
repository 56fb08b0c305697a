#pragma once

#include <benchmark/benchmark.h>

#include <chrono>

namespace posenc::benchmarks {

/// Calls `work` for each iteration and gives its seconds as manual time, as the peers in other
/// processes give theirs.
template <typename Work>
void timed(benchmark::State& state, const Work& work) {
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
  }
}

}  // namespace posenc::benchmarks
