#pragma once

#include <string>

#include "models/encoder/config.h"
#include "posenc/models/decoder.h"

namespace posenc {

/// Throws c10::ValueError unless the model_type of a config.json is that of a decoder-only language
/// model that posenc can run. Returns the part of the file with it: none.
std::string decoder_part(const Settings& config);

/// The options of such a model, whose output layer is tied as the configuration says.
DecoderOptions decoder_options_of(const EncoderConfig& config);

}  // namespace posenc
