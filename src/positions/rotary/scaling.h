#pragma once

#include <cstdint>
#include <vector>

#include "posenc/positions/rotary/rotary_options.h"

namespace posenc {

/// The base with which the lowest frequency of `dim` channels is divided by `scale`.
double ntk_base(double base, double scale, int64_t dim);
/// That base for each axis; there must be one scale per axis.
std::vector<double> ntk_bases(const RotaryOptions& options, const std::vector<double>& scales);

/// Where YaRN's ramp begins and ends, in frequencies.
struct YarnRamp {
  double low = 0.0, high = 0.0;
};
YarnRamp yarn_ramp(const rotary::Yarn& scaling, int64_t dim, double base);

/// The factor of cos and sin.
double yarn_attention_factor(const rotary::Yarn& scaling);

}  // namespace posenc
