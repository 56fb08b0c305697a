#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/encoder/config.h"
#include "posenc/models/save_pretrained.h"

namespace posenc {

/// The config.json that save_pretrained() writes, and what it says of the encoder.
struct SavedConfig {
  nlohmann::json object;
  EncoderConfig encoder;
  bool is_part;              ///< whether config.json is of a pair, of which the encoder is a part
  encoder::Pooling pooling;  ///< of the configuration, which the encoder may lack
};

/// Completes the config.json that the encoder came with. Throws c10::ValueError where it
/// contradicts the encoder's options.
SavedConfig saved_config(const EncoderImpl& model, const SavePretrainedOptions& options);

}  // namespace posenc
