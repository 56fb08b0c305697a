#pragma once

#include <CLI/App.hpp>

#include <fmt/format.h>

#include <string>
#include <utility>

namespace posenc::cli {

/// Throws what a wrong command line is, which CLI11 has not noticed: exit status 2, with the text.
template <typename... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw CLI::ParseError(fmt::format(format, std::forward<Args>(args)...), 2);
}

/// Returns a message for users about a command line that CLI11 has rejected, with the subcommand or
/// option that was probably meant.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

/// "there is no subcommand tabel; did you mean table? Known: ...".
std::string unknown_subcommand(const CLI::App& app, const std::string& name);

}  // namespace posenc::cli
