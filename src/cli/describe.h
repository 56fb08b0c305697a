#pragma once

#include <CLI/App.hpp>

#include <string>

namespace posenc::cli {

/// The command line as JSON, from CLI11's own objects: what `posenc --describe` prints, and what
/// the man page and the completions are made from.
std::string description_of(CLI::App& app);

}  // namespace posenc::cli
