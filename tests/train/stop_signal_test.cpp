#include "posenc/train/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "support/compare.h"

namespace posenc::testing {
namespace {

volatile sig_atomic_t others = 0;

// The tests may themselves run as a shell's background job, whose SIGINT is ignored.
struct StopSignals : ::testing::Test {
  void SetUp() override {
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(SIGINT, &standard, &before_[0]);
    sigaction(SIGTERM, &standard, &before_[1]);
  }
  void TearDown() override {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
  }
  struct sigaction before_[2];
};

TEST_F(StopSignals, TakesOneSignalAndPutsTheHandlersBack) {
  struct sigaction own = {}, before = {}, after = {};
  own.sa_handler = [](int) { others = 1; };
  sigaction(SIGINT, &own, &before);
  {
    StopSignal stop;
    EXPECT_FALSE(stop.requested());
    raise(SIGTERM);
    EXPECT_TRUE(stop.requested());
    EXPECT_EQ(stop.number(), SIGTERM);
    raise(SIGINT);
    EXPECT_EQ(stop.number(), SIGINT);
    EXPECT_EQ(others, 0);
  }
  raise(SIGINT);
  EXPECT_EQ(others, 1);
  EXPECT_FALSE(StopSignal().requested()) << "an old signal is forgotten";
  sigaction(SIGINT, &before, &after);
}

// A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP: Ctrl-C is meant for
// another process.
TEST_F(StopSignals, LeavesAnIgnoredSignalIgnored) {
  struct sigaction ignore = {}, before = {}, now = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  {
    StopSignal stop;
    raise(SIGINT);
    raise(SIGINT);
    EXPECT_FALSE(stop.requested());
    raise(SIGTERM);
    EXPECT_EQ(stop.number(), SIGTERM) << "the other one is heard";
  }
  sigaction(SIGINT, &before, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

TEST_F(StopSignals, ASecondCtrlCEndsTheProcess) {
  EXPECT_EXIT(
      {
        StopSignal stop;
        raise(SIGINT);
        raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST_F(StopSignals, OneAtATime) {
  StopSignal stop;
  EXPECT_ERROR(StopSignal(), c10::Error, "[StopSignal] there must be one at a time");
  raise(SIGINT);
  EXPECT_TRUE(stop.requested()) << "the refused one has not taken the handlers away";
}

}  // namespace
}  // namespace posenc::testing
