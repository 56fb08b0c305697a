#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace posenc::platform {

/// Runs a program found in PATH with these files as its standard streams and with this process's
/// environment, except for the variable `without`. Returns its wait status, 0 if it exited with 0.
/// Throws std::system_error, with std::errc::no_such_file_or_directory if there is no such program.
int run_program(const std::vector<std::string>& arguments, std::FILE* in, std::FILE* out,
                std::FILE* err, const std::string& without);

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
