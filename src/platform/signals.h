#pragma once

namespace posenc::platform {

/// Installs `handler` for SIGINT and SIGTERM. It is called for the first of each; the system's
/// default action follows the second. A signal ignored since the process started stays ignored.
void catch_stop_signals(void (*handler)(int number));

/// Restores the handlers from before catch_stop_signals().
void restore_stop_signals();

}  // namespace posenc::platform
