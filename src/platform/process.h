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

}  // namespace posenc::platform
