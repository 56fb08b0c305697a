#pragma once

#include <cstdint>
#include <string>

#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"

namespace posenc {

/// Returns the validated options of the model that config.json in `folder` describes. Missing
/// settings have the defaults of transformers' MarianConfig. Throws c10::ValueError, and
/// WeightsError for a file that cannot be read.
TransformerOptions read_marian_options(const std::string& folder);

/// The generation options, from generation_config.json or, if there is none, config.json; and the
/// padding token. A setting that generate() does not support is an error. Throws as above.
struct MarianSearch {
  GenerateOptions generation;
  int64_t pad;
};
MarianSearch read_marian_search(const std::string& folder, const TransformerOptions& model);

}  // namespace posenc
