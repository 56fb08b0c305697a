#pragma once

#include "models/encoder/model_table.h"
#include "models/settings.h"
#include "posenc/models/encoder.h"

namespace posenc {

/// A configuration of a model whose encoder posenc can run.
struct EncoderConfig {
  const EncoderModelRow& row;
  Settings settings;  ///< of the encoder itself, if config.json describes several
  EncoderOptions options;
};

/// Reads a config.json. Throws c10::ValueError for its contents.
EncoderConfig read_encoder_config(const Settings& config);

}  // namespace posenc
