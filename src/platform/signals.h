#pragma once

namespace posenc::platform {

/// Lets `handler` be called for SIGINT and SIGTERM, once each, and the system's default action be
/// taken after that. A signal that the process was started to ignore stays ignored.
void catch_stop_signals(void (*handler)(int number));

/// Restores the handlers of before catch_stop_signals().
void restore_stop_signals();

}  // namespace posenc::platform
