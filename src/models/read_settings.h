#pragma once

#include <c10/util/Exception.h>

#include <nlohmann/json.hpp>
#include <string>

#include "io/base/file.h"
#include "io/base/json_tree.h"
#include "posenc/io/error.h"

namespace posenc {

constexpr uint64_t kLongestSettings = 16'000'000;  // in bytes

/// The JSON object in `text`, which messages call `name`. Throws c10::ValueError that begins with
/// `[caller] name: ` unless it is one.
inline nlohmann::json parse_settings(const std::string& caller, const std::string& name,
                                     const std::string& text) {
  nlohmann::json object;
  try {
    object = io::json_tree<nlohmann::json>(text, "its settings");
  } catch (const WeightsError& error) {
    TORCH_CHECK_VALUE(false, "[", caller, "] ", name, ": ", error.reason());
  }
  TORCH_CHECK_VALUE(object.is_object(), "[", caller, "] ", name, ": must be a JSON object. Got ",
                    object.type_name());
  return object;
}

/// The JSON object in a file of settings, such as a config.json. Throws WeightsError for a file
/// that cannot be read.
inline nlohmann::json read_settings(const std::string& caller, const std::string& path) {
  const io::InputFile file(path);
  TORCH_CHECK_VALUE(file.size() <= kLongestSettings, "[", caller, "] ", path,
                    ": must have at most ", kLongestSettings, " bytes. Got ", file.size());
  return parse_settings(caller, path, file.read(0, file.size()));
}

}  // namespace posenc
