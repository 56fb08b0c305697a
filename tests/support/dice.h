#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

#include "support/seed.h"

namespace posenc::testing {

/// Uniform random choices, which POSENC_TEST_SEED changes.
class Dice {
 public:
  explicit Dice(uint32_t own) : random_(seed(own)) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  bool coin() { return below(2) == 0; }
  template <typename T>
  T any(std::initializer_list<T> of) {
    return *(of.begin() + below(static_cast<int64_t>(of.size())));
  }

 private:
  std::mt19937 random_;
};

}  // namespace posenc::testing
