#pragma once

namespace posenc {

/// While it lives, the first Ctrl-C (SIGINT) and the first SIGTERM only ask to stop; a second
/// signal of the same kind ends the process as ever. A signal that was ignored stays so. The
/// destructor restores the previous handlers. Only one may live at a time: c10::Error for another.
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
  /// Of the signal that came last; 0 for none.
  int number() const;
};

}  // namespace posenc
