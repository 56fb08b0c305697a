#include "models/save/saved_settings.h"

#include "models/config/config_class.h"

namespace posenc {

void set_setting(nlohmann::json& object, const Settings& settings, const std::string& name,
                 const nlohmann::json& value) {
  if (settings.value(name) == value) return;
  object[settings.key(name)] = value;
}

// Those of rotary embeddings would be taken for given ones, beside what the file has in
// `rope_parameters`.
void set_defaults(nlohmann::json& object, const Settings& settings, std::string_view model_type) {
  for (const auto& [name, value] : hf::ConfigClass::of(model_type).defaults().items()) {
    const bool is_rotary = name.find("rope") != std::string::npos || name.find("rota") == 0;
    if (value.is_primitive() && !value.is_null() && !is_rotary && !settings.mentions(name))
      object[name] = value;
  }
}

void set_dtype(nlohmann::json& object) {
  object.erase("torch_dtype");  // its name in older releases
  object["dtype"] = "float32";
}

}  // namespace posenc
