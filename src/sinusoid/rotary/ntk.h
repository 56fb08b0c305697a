#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "posenc/sinusoid/rotary_options.h"

namespace posenc {

/// The base with which the lowest frequency of `dim` channels is divided by `scale`.
inline double ntk_base(double base, double scale, int64_t dim) {
  const auto channels = static_cast<double>(dim);
  return base * std::pow(scale, channels / (channels - 2));
}

/// That base for each axis; there must be one scale per axis.
inline std::vector<double> ntk_bases(const RotaryOptions& options,
                                     const std::vector<double>& scales) {
  const std::vector<int64_t> dims = options.plane_dims();
  std::vector<double> bases;
  for (size_t i = 0; i < dims.size(); ++i) {
    bases.push_back(ntk_base(options.base(), scales[i], dims[i]));
  }
  return bases;
}

}  // namespace posenc
