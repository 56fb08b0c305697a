#pragma once

#include <CLI/App.hpp>

#include <string>

namespace posenc::cli {

/// Returns a message for users about a command line that CLI11 has rejected, with the subcommand or
/// option that was probably meant.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

/// "there is no subcommand tabel; did you mean table? Known: ...".
std::string unknown_subcommand(const CLI::App& app, const std::string& name);

}  // namespace posenc::cli
