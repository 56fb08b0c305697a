#pragma once

#include <cstdint>

#include "posenc/sinusoid/rotary_scaling.h"

namespace posenc {

/// Where YaRN's ramp begins and ends, in frequencies.
struct YarnRamp {
  double low = 0.0, high = 0.0;
};
YarnRamp yarn_ramp(const rotary::Yarn& scaling, int64_t dim, double base);

/// The factor of cos and sin.
double yarn_attention_factor(const rotary::Yarn& scaling);

}  // namespace posenc
