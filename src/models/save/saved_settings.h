#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "models/config/settings.h"

namespace posenc {

struct GenerateOptions;

/// Sets `value` in the config.json `object`, which has `settings`, under the name that it has for
/// it there, unless it has that value, maybe as a default.
void set_setting(nlohmann::json& object, const Settings& settings, const std::string& name,
                 const nlohmann::json& value);

/// Sets what the file leaves to the defaults of its class: another release of transformers may have
/// others.
void set_defaults(nlohmann::json& object, const Settings& settings, std::string_view model_type);

/// Sets the dtype that all saved weights have.
void set_dtype(nlohmann::json& object);

/// The generation_config.json of a model whose options of generate() came from `text`, that of its
/// folder, or where that is empty from its config.json: `text` itself unless settings have changed.
/// `vocab` is the number of the model's target tokens, and `pad` its padding, if it is no longer
/// that of config.json. Throws c10::ValueError for options that are no settings of transformers.
std::string saved_generation(const std::string& text, const Settings& config,
                             const GenerateOptions& options, int64_t vocab,
                             std::optional<int64_t> pad);

}  // namespace posenc
