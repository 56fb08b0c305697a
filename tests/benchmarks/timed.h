#pragma once

#include <benchmark/benchmark.h>

#include <chrono>

namespace posenc::benchmarks {

/// Runs `work` in each iteration and reports its duration as manual time, like the peers in other
/// processes.
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
