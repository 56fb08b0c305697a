#pragma once

#include <string>

namespace posenc::cli {

/// Runs `script` in gnuplot, found in PATH, and returns the picture, PNG or SVG. Throws
/// CommandError if gnuplot is not installed, fails, prints a warning, or draws an incomplete
/// picture. Ignores the user's gnuplot settings. Creates no named files.
std::string gnuplot(const std::string& script);

}  // namespace posenc::cli
