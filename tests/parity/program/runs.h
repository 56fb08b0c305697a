#pragma once

#include <string>
#include <vector>

#include "cli/program.h"

namespace posenc::testing {

/// Runs the built `posenc-parity` with these arguments.
Result posenc_parity(std::vector<std::string> arguments);

/// expect_refused() of that program.
void expect_parity_refused(const Result& result, const std::string& subcommand,
                           const std::string& text);

/// The TorchScript files of the notebooks' classes: those that Python has just written, and the
/// committed ones.
std::vector<std::string> script_files();

/// Saves a TorchScript module of class `name` with the given tensors (parameters, nested by dots in
/// their names) and methods.
void save_script(const std::string& path, const std::string& name, const StateDict& tensors,
                 const std::string& source);

}  // namespace posenc::testing
