#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace posenc::platform {

/// The parts of a loop, in any order and at the same time: part(context, i) for each i in [0,
/// count). There are fewer than 2^32.
struct Parts {
  void (*part)(void* context, int64_t i);
  void* context;
  int64_t count;
};

/// Threads that help callers with the parts of their loops. Whoever is free takes a part: the
/// caller from the beginning, helpers from the end. When none is left, the caller waits only for
/// parts that a helper is executing. So a helper that does not run costs nothing, unless it loses
/// its processor within a part.
///
/// After a loop a helper watches for the next one for a moment, and then sleeps. Any number of
/// threads may call at once; a helper serves one at a time, and a caller that finds none does all
/// parts itself.
class Helpers {
 public:
  /// At most this many; each is started when it is first wanted.
  explicit Helpers(int most);
  ~Helpers();  ///< stop()
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  /// How many threads, of at most `limit`, a loop may count on: the caller and the helpers that do
  /// not pause. One inside a part.
  int threads(int limit) const;

  /// Runs all parts on at most `threads` threads. The first exception of a part is thrown, and
  /// parts that have not begun by then are left out. Inside a part, the calling thread runs all.
  void run(const Parts& parts, int threads);

  /// Ends the helpers. Loops that run meanwhile or later are run by their callers.
  void stop();

 private:
  class Loop;
  struct Helper;

  bool start(Helper& helper);
  void serve(Helper& helper);
  void sleep(Helper& helper, int64_t word);
  int64_t assign(Helper& helper, Loop& loop);
  void release(Helper& helper, int64_t assigned, const Loop& loop);

  const int most_;
  const std::unique_ptr<Helper[]> helpers_;
  std::atomic<int64_t> worked_{0};
  std::atomic<bool> is_stopped_{false};
  std::atomic<bool> is_starting_{false};
};

/// Those of this process: one less than its processors. They are stopped at its end, and when the
/// library is unloaded; a forked child has its own.
Helpers& helpers();

}  // namespace posenc::platform
