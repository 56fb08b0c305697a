#pragma once

#include <string>

#include "models/config/settings.h"
#include "models/types/model_types.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc {

/// The rotary embedding of layers of type `layer_type` of a model with a rotary preset; see
/// rotary_options_from_hf(). `config` has the settings of the model itself.
RotaryOptions rotary_options_of(const Settings& config, const hf::ModelType& model,
                                const std::string& layer_type);

}  // namespace posenc
