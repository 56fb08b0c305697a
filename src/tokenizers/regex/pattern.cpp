#include "tokenizers/regex/pattern.h"

#include "posenc/tokenizers/error.h"

namespace posenc::text {

Pattern component_pattern(const Component& component) {
  const nlohmann::json& pattern = component.at("pattern");
  const bool is_one = pattern.is_object() && pattern.size() == 1;
  if (is_one && pattern.contains("String") && pattern["String"].is_string()) {
    return Pattern::literal(pattern["String"].get_ref<const std::string&>());
  }
  if (is_one && pattern.contains("Regex") && pattern["Regex"].is_string()) {
    return Pattern::regex(pattern["Regex"].get_ref<const std::string&>());
  }
  component.refuse("pattern", R"({"String": text} or {"Regex": expression})");
}

}  // namespace posenc::text
