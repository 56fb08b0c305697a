#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace posenc::train {

/// Shuffles values in the same order on every machine: the standard specifies the engine and
/// seed_seq exactly, but neither std::shuffle nor the distributions.
class Shuffler {
 public:
  explicit Shuffler(int64_t seed, int64_t stream = 0) {
    const auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
    const auto high = [](int64_t x) { return static_cast<uint32_t>(x >> 32); };
    std::seed_seq seeds{low(seed), high(seed), low(stream), high(stream)};
    engine_.seed(seeds);
  }

  template <typename Value>
  void operator()(std::vector<Value>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((static_cast<uint64_t>(engine_()) * n) >> 32);
  }

  std::mt19937 engine_;
};

}  // namespace posenc::train
