#pragma once

#include <vector>

#include "models/config/settings.h"
#include "models/lora/adapted_source.h"

namespace posenc::lora {

/// The config.json of the class that adapters were trained on: with the head that one of them has
/// in place of the base's, and its labels. It is `config` itself where none has a head.
Settings with_heads(const Settings& config, const std::vector<WeightedAdapter>& adapters);

}  // namespace posenc::lora
