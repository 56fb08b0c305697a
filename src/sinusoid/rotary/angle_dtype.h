#pragma once

#include "posenc/sinusoid/rotary_options.h"

namespace posenc {

/// The dtype of frequencies and angles for hidden states of type `dtype`.
inline at::ScalarType angle_dtype(const RotaryOptions& options, at::ScalarType dtype) {
  switch (options.angle_type()) {
    case rotary::AngleType::Float32: return at::kFloat;
    case rotary::AngleType::Float64:
    case rotary::AngleType::Float64Angle: return at::kDouble;
    case rotary::AngleType::Input: break;
  }
  return dtype;
}

}  // namespace posenc
