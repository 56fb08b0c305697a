#pragma once

#include <vector>

#include "posenc/sinusoid/rotary_preset.h"

namespace posenc {

/// The presets of other packages than transformers.
std::vector<RotaryPreset> package_presets();

}  // namespace posenc
