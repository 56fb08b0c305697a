#pragma once

namespace posenc::platform {

/// Begins to record SIGINT and SIGTERM for stop_signal(), instead of the system's default action,
/// which happens at the second signal of a kind. A signal ignored since the process started stays
/// ignored.
void catch_stop_signals();

/// Restores the handlers from before catch_stop_signals().
void restore_stop_signals();

/// The number of the last signal since catch_stop_signals(); 0: none.
int stop_signal();

/// Ends the process as this signal's default action does, so that its parent sees the cause.
[[noreturn]] void end_by_signal(int number);

}  // namespace posenc::platform
