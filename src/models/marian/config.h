#pragma once

#include <cstdint>
#include <string>

#include "models/settings.h"
#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"

namespace posenc {

/// The options of the model that `config`, a config.json, describes. Missing settings have the
/// defaults of transformers' MarianConfig. Throws c10::ValueError.
TransformerOptions read_marian_options(const Settings& config);

/// The generation options, from generation_config.json in `folder` or, if there is none, `config`;
/// and the padding token. A setting that generate() does not support is an error. Throws as above,
/// and WeightsError for a file that cannot be read.
struct MarianSearch {
  GenerateOptions generation;
  int64_t pad;
};
MarianSearch read_marian_search(const std::string& folder, const Settings& config,
                                const TransformerOptions& model);

}  // namespace posenc
