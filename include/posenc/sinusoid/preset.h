#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// A sinusoid that some system computes, under a name.
struct Preset {
  std::string name;     ///< what preset() takes
  std::string source;   ///< system and class that it reproduces
  std::string formula;  ///< its operations, in order
  SinusoidOptions (*make)(int64_t dim);
};

/// All presets, in a fixed order.
const std::vector<Preset>& presets();

/// The options that reproduce the named system's table bit for bit at width `dim`.
/// Throws c10::ValueError with the nearest names when there is no such preset.
SinusoidOptions preset(std::string_view name, int64_t dim);

}  // namespace posenc
