// LibTorch's default generator begins anew in each test: what a test draws is the same alone and
// after others, and changes with POSENC_TEST_SEED in those that set no seed of their own too.

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "support/seed.h"

namespace posenc::testing {
namespace {

class BeginsAnew : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { torch::manual_seed(seed(0)); }
};

const bool listens = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new BeginsAnew);  // gtest deletes it
  return true;
}();

}  // namespace
}  // namespace posenc::testing
