// How the time-out of a group is divided between the steps of its meeting, by a clock of the test.
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "support/compare.h"
#include "train/gloo/meet.h"

namespace posenc {
namespace {

using gloo::Deadline;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// A clock that shows the same time until it is set forward.
class Clock {
 public:
  std::function<Deadline::Clock::time_point()> now() {
    return [this] { return now_; };
  }
  void pass(Deadline::Clock::duration time) { now_ += time; }

 private:
  Deadline::Clock::time_point now_{};
};

TEST(Deadline, LeavesWhatHasNotPassed) {
  Clock clock;
  const Deadline deadline(seconds(6), clock.now());
  EXPECT_EQ(deadline.left(), seconds(6));
  clock.pass(seconds(4));
  EXPECT_EQ(deadline.left(), seconds(2));
  clock.pass(microseconds(1'998'900));
  EXPECT_EQ(deadline.left(), milliseconds(2)) << "1.1 ms, rounded up";
}

TEST(Deadline, LeavesAMillisecondWhenItIsOver) {
  Clock clock;
  const Deadline deadline(seconds(6), clock.now());
  for (int i = 0; i < 2; ++i) {
    clock.pass(seconds(6));
    EXPECT_EQ(deadline.left(), milliseconds(1));
  }
}

/// The launch of rank 0 of `size`, which serves the store at a free port.
gloo::Launch first_of(int size) {
  gloo::Launch launch;
  launch.size = size;
  launch.address = "127.0.0.1";
  return launch;
}

// What the connection to the store has taken is not granted again for the peers.
TEST(Meet, TheTimeoutIsThatOfTheWholeMeeting) {
  auto reads = std::make_shared<int>(0);
  const Deadline deadline(seconds(60), [reads] {  // read for the end, the store and the peers
    return Deadline::Clock::time_point{} + (++*reads < 3 ? milliseconds(0) : milliseconds(59'877));
  });
  const std::string text =
      testing::message_of([&] { gloo::meet(first_of(2), GroupOptions(), deadline); });
  EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                      "[group_from_environment] rank 0 of 2: the processes did not find each other",
                      text);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "123ms", text) << "what was left";
  EXPECT_EQ(*reads, 3);
}

TEST(Meet, ACollectiveHasTheWholeTimeout) {
  Clock clock;
  const Deadline deadline(minutes(5), clock.now());
  clock.pass(minutes(4));
  const RankGroup group = gloo::meet(first_of(1), GroupOptions().timeout(minutes(5)), deadline);
  EXPECT_EQ(group->getBackend(c10::kCPU)->getBackendOptions()->timeout, minutes(5));
}

}  // namespace
}  // namespace posenc
