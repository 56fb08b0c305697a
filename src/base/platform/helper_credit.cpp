#include "base/platform/helper_credit.h"

#include <algorithm>

namespace posenc::platform {
namespace {

constexpr int64_t kServicePerLoss = 10;
constexpr int64_t kMostCredit = 500'000;
constexpr int64_t kLongestPause = 1'000'000'000;

}  // namespace

void HelperCredit::note(int64_t loop, int64_t lost, int64_t worked) {
  const int64_t credit = credit_.load(std::memory_order_relaxed) + loop / kServicePerLoss - lost;
  credit_.store(std::clamp<int64_t>(credit, 0, kMostCredit), std::memory_order_relaxed);
  if (credit >= kMostCredit) last_pause_.store(0, std::memory_order_relaxed);
  if (credit >= 0) return;
  const int64_t twice = 2 * last_pause_.load(std::memory_order_relaxed);
  const int64_t pause = std::min(std::max(kServicePerLoss * lost, twice), kLongestPause);
  last_pause_.store(pause, std::memory_order_relaxed);
  paused_until_.store(worked + pause, std::memory_order_relaxed);
}

bool HelperCredit::pauses(int64_t worked) const {
  return worked < paused_until_.load(std::memory_order_relaxed);
}

}  // namespace posenc::platform
