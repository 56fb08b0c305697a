#pragma once

#include <vector>

#include "posenc/sinusoid/rotary_preset.h"

namespace posenc {

/// The presets whose tokens have several coordinates: patches of images, atoms, time stamps.
std::vector<RotaryPreset> axial_presets();

}  // namespace posenc
