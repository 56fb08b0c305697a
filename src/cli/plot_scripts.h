#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/sinusoid/options.h"

namespace posenc::cli {

/// A picture as a gnuplot script without its `set terminal`.
struct Figure {
  std::string name;   ///< of the file, without extension
  int width, height;  ///< in pixels
  std::string script;
};

/// Heat map, waveforms and position similarity of the table (length, D) of `recipe`; `preset` is
/// its name.
std::vector<Figure> figures(const std::string& preset, const SinusoidOptions& recipe,
                            int64_t length);

/// `$name << EOD ... EOD`, one row of the matrix per line.
std::string data_block(const std::string& name, const at::Tensor& matrix);

/// The script that draws `figure` to standard output as `format`, "png" or "svg".
std::string script_for(const Figure& figure, const std::string& format);

}  // namespace posenc::cli
