#pragma once

#include <string>

namespace pronounce {

/// Runs `script` in gnuplot, found in PATH, and returns the PNG. Throws if gnuplot is not
/// installed, fails, or prints a warning.
std::string gnuplot(const std::string& script);

}  // namespace pronounce
