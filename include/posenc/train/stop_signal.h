#pragma once

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// RAII guard: while it is alive, the first Ctrl-C (SIGINT) and the first SIGTERM are recorded as a
/// request to stop. A second signal of the same kind ends the process as usual, and a signal that
/// was ignored stays ignored. The destructor restores the previous handlers.
/// ```cpp
/// posenc::StopSignal stop;
/// auto options = posenc::TrainerOptions(/*steps=*/1000).stop([&] { return stop.requested(); });
/// ```
///
/// Errors: c10::Error for a second guard at the same time.
class StopSignal {
 public:
  StopSignal();   ///< installs the handlers
  ~StopSignal();  ///< restores the previous handlers
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Whether a signal was received.
  bool requested() const { return number() != 0; }
  /// The number of the last signal received; 0 if there was none.
  int number() const;
};

}  // namespace posenc
