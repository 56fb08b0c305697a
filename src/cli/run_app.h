#pragma once

#include <CLI/App.hpp>

namespace posenc::cli {

/// The whole of a program's main(): runs the subcommand in its arguments. Returns the exit status:
/// 0 success, 1 rejected input, 2 usage error.
int run_app(CLI::App& app, int argc, char** argv);

}  // namespace posenc::cli
