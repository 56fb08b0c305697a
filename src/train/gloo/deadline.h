#pragma once

#include <algorithm>
#include <chrono>
#include <functional>

namespace posenc::gloo {

/// A limit of time that several steps share.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` from now, as `now` tells it.
  explicit Deadline(
      std::chrono::milliseconds timeout,
      std::function<Clock::time_point()> now = [] { return Clock::now(); })
      : now_(std::move(now)), end_(now_() + timeout) {}

  /// What is left for the next step, rounded up; a millisecond when it is over, since LibTorch
  /// takes nothing for no limit.
  std::chrono::milliseconds left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - now_());
    return std::max(left, std::chrono::milliseconds(1));
  }

 private:
  std::function<Clock::time_point()> now_;
  Clock::time_point end_;
};

}  // namespace posenc::gloo
