#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "posenc/sinusoid/rotary_options.h"

namespace posenc {

/// The base at which the lowest of the frequencies of `dim` channels is 1 / scale of what it was.
inline double ntk_base(double base, double scale, int64_t dim) {
  const auto channels = static_cast<double>(dim);
  return base * std::pow(scale, channels / (channels - 2));
}

/// That base for each axis, of whose scales there must be as many.
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
