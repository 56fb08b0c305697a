#pragma once

#include "models/config/settings.h"
#include "models/types/model_types.h"
#include "posenc/models/encoder.h"

namespace posenc {

/// A configuration of a model whose encoder posenc can run.
struct EncoderConfig {
  const hf::ModelType& model;
  const EncoderStructure& structure;  ///< that of the model
  Settings settings;                  ///< of the encoder itself, if config.json describes several
  EncoderOptions options;
  Settings whole;  ///< all of config.json
};

/// Reads a config.json. Throws c10::ValueError for its contents, for a known model that posenc
/// cannot run, with what it lacks, and for an unknown one, with the nearest names.
/// `part` is that which is read of a config.json of several encoders; that of load_encoder() if it
/// is empty.
EncoderConfig read_encoder_config(const Settings& config, const std::string& part = "");

/// The options of the encoder of such a model by these settings of its own.
EncoderOptions encoder_options_of(const Settings& config, const hf::ModelType& model);

}  // namespace posenc
