#pragma once

#include <vector>

#include "posenc/sinusoid/rotary_preset.h"

namespace posenc {

/// The presets of packages other than transformers.
std::vector<RotaryPreset> package_presets();

}  // namespace posenc
