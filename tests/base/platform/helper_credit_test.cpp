#include "base/platform/helper_credit.h"

#include <gtest/gtest.h>

namespace posenc::platform {
namespace {

constexpr int64_t kMicro = 1000, kMilli = 1000 * kMicro;

TEST(HelperCredit, PausesForTenTimesTheLoss) {
  HelperCredit credit;
  EXPECT_FALSE(credit.pauses(0));
  credit.note(100 * kMicro, 4 * kMilli, 10 * kMilli);
  EXPECT_TRUE(credit.pauses(10 * kMilli));
  EXPECT_TRUE(credit.pauses(49 * kMilli));
  EXPECT_FALSE(credit.pauses(50 * kMilli));
}

TEST(HelperCredit, ForgivesATenthOfTheService) {
  HelperCredit credit;
  for (int loop = 0; loop < 40; ++loop) credit.note(100 * kMicro, 0, 0);  // 0.4 ms of credit
  credit.note(100 * kMicro, 400 * kMicro, 0);
  EXPECT_FALSE(credit.pauses(0));
  credit.note(100 * kMicro, 400 * kMicro, 0);
  EXPECT_TRUE(credit.pauses(0));
}

TEST(HelperCredit, IsSavedToALimit) {
  HelperCredit credit;
  credit.note(1000 * kMilli, 0, 0);
  credit.note(0, 600 * kMicro, 0);
  EXPECT_TRUE(credit.pauses(0));
}

TEST(HelperCredit, PausesGrowUntilItServesWell) {
  HelperCredit credit;
  int64_t worked = 0;
  for (int64_t pause = 40 * kMilli; pause < 1000 * kMilli; pause *= 2) {
    credit.note(0, 4 * kMilli, worked);
    EXPECT_TRUE(credit.pauses(worked + pause - 1)) << pause;
    EXPECT_FALSE(credit.pauses(worked + pause)) << pause;
    worked += pause;
  }
  for (int i = 0; i < 3; ++i) credit.note(0, 4 * kMilli, worked);
  EXPECT_FALSE(credit.pauses(worked + 1000 * kMilli)) << "one second is the longest";
  credit.note(5 * kMilli, 0, worked);
  credit.note(0, 4 * kMilli, worked);
  EXPECT_FALSE(credit.pauses(worked + 40 * kMilli)) << "it begins again";
}

}  // namespace
}  // namespace posenc::platform
