#include "core/torch_internals/parallel_for.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <atomic>

#include "support/threads.h"

namespace posenc {
namespace {

// What holds in each piece of a loop over three threads.
struct Modes {
  bool grad = true, inference = true;  // in all of them
  bool any_grad = false, any_inference = false;
};

Modes modes_in_threads() {
  const testing::Threads three(3);
  std::atomic<int> grad{0}, inference{0}, pieces{0};
  torch_internals::parallel_for(0, 12, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      ++pieces;
      grad += at::GradMode::is_enabled() ? 1 : 0;
      inference += at::ones({1}).is_inference() ? 1 : 0;
    }
  });
  EXPECT_EQ(pieces, 12);
  return {grad == 12, inference == 12, grad > 0, inference > 0};
}

TEST(ParallelFor, CarriesTheGradModeIntoItsThreads) {
  EXPECT_TRUE(modes_in_threads().grad);
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(modes_in_threads().any_grad);
}

TEST(ParallelFor, CarriesInferenceModeIntoItsThreads) {
  EXPECT_FALSE(modes_in_threads().any_inference);
  const c10::InferenceMode guard;
  EXPECT_TRUE(modes_in_threads().inference);
}

}  // namespace
}  // namespace posenc
