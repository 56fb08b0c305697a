#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/models/lora.h"

namespace posenc::lora {

inline constexpr const char* kConfigFile = "adapter_config.json";

/// Throws c10::ValueError, naming `caller`, for settings that no adapter has.
void check_config(const std::string& where, const LoraConfig& config);

/// The value of `setting` for a module: that of the first pattern that matches its name.
double value_for(const LoraConfig::Pattern& pattern, double setting, const std::string& module);

/// r and the factor s of a module.
int64_t rank_of(const LoraConfig& config, const std::string& module);
double scale_of(const LoraConfig& config, const std::string& module);

/// Whether the module is one that the adapter acts on. `defaults` are the names for the model type.
bool is_target(const LoraConfig& config, const std::string& module,
               const std::vector<std::string>& defaults);

/// What PEFT's table has for a model type; nothing if it lacks it.
std::vector<std::string> default_targets(const std::string& model_type);

/// Whether the module is one of modules_to_save, or inside one, and so no target.
bool is_saved_module(const LoraConfig& config, const std::string& module);

/// Whether PEFT saves the module by modules_to_save, which there is any end of its name, or of the
/// name of one around it: `classifier` is `pre_classifier` too.
bool has_saved_values(const LoraConfig& config, const std::string& module);

/// adapter_config.json of these settings.
nlohmann::ordered_json json_of(const LoraConfig& config);

}  // namespace posenc::lora
