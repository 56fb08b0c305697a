#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "models/config/settings.h"

namespace posenc {

/// Sets `value` in the config.json `object`, which has `settings`, under the name that it has for
/// it there, unless it has that value, maybe as a default.
void set_setting(nlohmann::json& object, const Settings& settings, const std::string& name,
                 const nlohmann::json& value);

/// Sets what the file leaves to the defaults of its class: another release of transformers may have
/// others.
void set_defaults(nlohmann::json& object, const Settings& settings, std::string_view model_type);

/// Sets the dtype that all saved weights have.
void set_dtype(nlohmann::json& object);

}  // namespace posenc
