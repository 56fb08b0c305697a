#pragma once

namespace posenc {

/// While it lives, the first Ctrl-C (SIGINT) or SIGTERM only asks to stop; a second one ends the
/// process as ever. A signal that was ignored stays so. The destructor restores the previous
/// handlers. One at a time: c10::Error for a second.
///
/// ```cpp
/// posenc::StopSignal stop;
/// auto options = posenc::TrainerOptions(/*steps=*/1000).stop([&] { return stop.requested(); });
/// ```
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool requested() const { return number() != 0; }
  /// Of the signal that came; 0 for none.
  int number() const;
};

}  // namespace posenc
