#pragma once

#include <CLI/App.hpp>

#include <string>

namespace posenc::cli {

/// What is wrong with a command line that CLI11 has refused, for people, with the subcommand or
/// the option that was probably meant.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

/// "there is no subcommand verfy; did you mean verify? Known: ...".
std::string unknown_subcommand(const CLI::App& app, const std::string& name);

}  // namespace posenc::cli
