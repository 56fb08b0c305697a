#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/config/settings.h"
#include "posenc/inference/generate_options.h"

namespace posenc {

/// The generation_config.json of a model whose options of generate() came from `text`, that of its
/// folder, or where that is empty from its config.json: `text` itself unless settings have changed.
/// `vocab` is the number of the model's target tokens, and `pad` its padding, if it is no longer
/// that of config.json. Throws c10::ValueError for options that are no settings of transformers.
std::string saved_generation(const std::string& text, const Settings& config,
                             const GenerateOptions& options, int64_t vocab,
                             std::optional<int64_t> pad);

}  // namespace posenc
