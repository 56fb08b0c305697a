#pragma once

#include <gtest/gtest.h>

#include "support/compare.h"
#include "support/threads.h"

namespace posenc::testing {

/// Expects run() (B, L, D) to be near `expected`, and to have the same bits with one thread and
/// with three. Rows that `counted` (B, L) leaves out, unless it is undefined, are not compared.
template <typename Run>
void expect_with_threads(const torch::Tensor& expected, const Run& run,
                         const torch::Tensor& counted = {}) {
  const auto compared = [&](const torch::Tensor& x) {
    return counted.defined() ? x * counted.unsqueeze(-1) : x;
  };
  torch::Tensor one;
  for (const int threads : {1, 3}) {
    const Threads use(threads);
    const torch::Tensor got = run();
    EXPECT_TRUE(near(compared(got), compared(expected)));
    if (one.defined()) {
      EXPECT_TRUE(bit_equal(got, one));
    }
    one = got;
  }
}

}  // namespace posenc::testing
