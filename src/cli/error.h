#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace posenc::cli {

/// The command fails, usually because its input is rejected: exit status 1, with the text on stderr
/// after the command's name.
class CommandError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws CommandError with a formatted message.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw CommandError(fmt::format(format, std::forward<Args>(args)...));
}

/// Writes to stderr. Unlike fmt::print, does not throw if stderr is closed or full: nothing can be
/// reported then.
template <typename... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stderr);
}

/// Returns the message of an exception for users, without LibTorch's backtrace and source lines.
std::string message_of(const std::exception& error);

/// "a, b, c"; for more than `most` names, "a, b, and 3 more".
std::string listed(std::vector<std::string> names, std::size_t most = SIZE_MAX);

/// Makes `text` safe to print on a terminal: replaces control characters, except newlines, with
/// '?'.
std::string for_terminal(const std::string& text);

/// A name from a file for messages and tables: safe for a terminal, and at most 120 bytes long.
std::string shown(const std::string& name);

/// "; did you mean b?", or "" if no known name is close enough.
std::string did_you_mean(const std::string& requested, const std::vector<std::string>& known);

/// "; did you mean b? Known: a, b, c".
std::string suggestion(const std::string& requested, const std::vector<std::string>& known);

}  // namespace posenc::cli
