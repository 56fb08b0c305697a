#pragma once

#include <atomic>
#include <cstdint>

namespace posenc::platform {

/// What a helper may cost its callers, in nanoseconds of their time in loops: a tenth of the loops
/// that it served. One that costs more pauses for ten times the loss, and for twice as long each
/// time until it has served well again. Callers' own time is what counts, so a helper that never
/// gets a processor costs those that call once a second no larger share than others.
class HelperCredit {
 public:
  /// Notes a loop of length `loop`, at whose end the caller waited `lost` for this helper, besides
  /// the time of a part; or that the helper was without a processor for `lost`, with no `loop`.
  /// `worked`: what callers have worked since the beginning.
  void note(int64_t loop, int64_t lost, int64_t worked);
  bool pauses(int64_t worked) const;

 private:
  std::atomic<int64_t> credit_{0}, last_pause_{0}, paused_until_{0};
};

}  // namespace posenc::platform
