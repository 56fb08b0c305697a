#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace posenc::platform {

/// Runs a program of the PATH between three files, with this process's environment without the
/// variable `without`; its wait status, 0 where it ended with 0. Throws std::system_error, with
/// std::errc::no_such_file_or_directory where there is no such program.
int run_program(const std::vector<std::string>& arguments, std::FILE* in, std::FILE* out,
                std::FILE* err, const std::string& without);

}  // namespace posenc::platform
