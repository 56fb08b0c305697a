#pragma once

#include <string>

namespace posenc::cli {

/// The picture, PNG or SVG, that gnuplot, from PATH, draws for `script`. Refuses when it is not
/// installed, fails, or warns, and a picture that is not whole. What the user has set for other
/// pictures does not count. No file with a name is made.
std::string gnuplot(const std::string& script);

}  // namespace posenc::cli
