#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "models/encoder/config.h"
#include "models/heads/config.h"
#include "posenc/models/save_pretrained.h"

namespace posenc {

/// The config.json that save_pretrained() writes, and what it says of the encoder.
struct SavedConfig {
  nlohmann::json object;
  EncoderConfig encoder;
  bool is_part;              ///< whether config.json is of a pair, of which the encoder is a part
  encoder::Pooling pooling;  ///< of the configuration, which the encoder may lack
  std::optional<HeadConfig> head;  ///< of a Classifier
};

/// Completes the config.json that the encoder came with; `classifier` is that of which it is the
/// encoder, or null. Throws c10::ValueError where it contradicts the encoder's options.
SavedConfig saved_config(const EncoderImpl& model, const SavePretrainedOptions& options,
                         const ClassifierImpl* classifier);

}  // namespace posenc
