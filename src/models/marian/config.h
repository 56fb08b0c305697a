#pragma once

#include <cstdint>
#include <string>

#include "posenc/models/generate.h"
#include "posenc/models/transformer.h"

namespace posenc {

/// The model that config.json in `folder` describes, checked; a setting that it lacks has the
/// default of transformers' MarianConfig. Throws c10::ValueError, and WeightsError for a file that
/// cannot be read.
TransformerOptions read_marian_options(const std::string& folder);

/// How its targets are searched, by generation_config.json or, where there is none, config.json,
/// and the token that pads. A setting that generate() does not have is an error. Throws as above.
struct MarianSearch {
  GenerateOptions generation;
  int64_t pad;
};
MarianSearch read_marian_search(const std::string& folder, const TransformerOptions& model);

}  // namespace posenc
