#pragma once

namespace posenc::platform {

/// Installs `handler` for SIGINT and SIGTERM. It is called once for each; the system's default
/// action follows the next time. A signal that was ignored when the process started stays ignored.
void catch_stop_signals(void (*handler)(int number));

/// Restores the handlers from before catch_stop_signals().
void restore_stop_signals();

}  // namespace posenc::platform
