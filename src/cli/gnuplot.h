#pragma once

#include <string>

namespace posenc::cli {

/// What gnuplot, from PATH, writes to its standard output for `script`. Refuses when it is not
/// installed, fails, or warns. No file with a name is made.
std::string gnuplot(const std::string& script);

}  // namespace posenc::cli
