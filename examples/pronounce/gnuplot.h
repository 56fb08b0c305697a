#pragma once

#include <string>

namespace pronounce {

/// The PNG that gnuplot, found in PATH, draws for `script`. Throws where gnuplot is not installed,
/// fails, or warns.
std::string gnuplot(const std::string& script);

}  // namespace pronounce
