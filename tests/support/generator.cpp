// Resets LibTorch's default generator before each test, so that a test draws the same numbers alone
// as after others. With POSENC_TEST_SEED, the numbers also change in tests that do not set a seed.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "support/seed.h"

namespace posenc::testing {
namespace {

class ResetsGenerator : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { torch::manual_seed(seed(0)); }
};

const bool generator_listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new ResetsGenerator);  // gtest deletes it
  return true;
}();

}  // namespace
}  // namespace posenc::testing
