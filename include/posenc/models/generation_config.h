#pragma once

#include <string>

#include "posenc/export.h"
#include "posenc/inference/generate_options.h"

namespace posenc POSENC_EXPORT {

/// The settings of generate() in a model's folder: generation_config.json, or config.json where
/// there is none. `overrides` is a JSON object of settings that replace the folder's; null removes
/// one. Lengths are then those of transformers: 20 new tokens if nobody names another.
///
/// Errors: c10::ValueError for settings that generate() does not have, with their names, and for
/// unknown names in `overrides`; WeightsError for a file that cannot be read.
GenerateOptions load_generation_config(const std::string& folder,
                                       const std::string& overrides = "");

}  // namespace posenc
