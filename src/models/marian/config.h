#pragma once

#include <cstdint>
#include <string>

#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"

namespace posenc {

/// What config.json and generation_config.json say of a Marian model.
struct MarianConfig {
  TransformerOptions transformer{1, 1};
  GenerateOptions generation{0, 0};
  int64_t pad = 0;
};

/// Reads and checks both files in `folder`. As transformers 5.23 does: a setting that config.json
/// lacks has MarianConfig's default, and where there is no generation_config.json the search's
/// settings are config.json's too. A setting of the search that generate() does not have is an
/// error. Throws c10::ValueError, and WeightsError for a file that cannot be read.
MarianConfig read_marian_config(const std::string& folder);

}  // namespace posenc
