#include "cli/set_option.h"

#include <utility>

#include "cli/error.h"
#include "cli/usage.h"

namespace posenc::cli {

std::map<std::string, nlohmann::json> settings_in(const std::vector<std::string>& given) {
  std::map<std::string, nlohmann::json> settings;
  for (const std::string& setting : given) {
    const auto equals = setting.find('=');
    const std::string name = setting.substr(0, equals), text = setting.substr(equals + 1);
    if (settings.contains(name)) fail_usage("--set {} must be given once", shown(name));
    auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded())
      fail_usage("--set {}: the value must be JSON, such as 4, true, null or [[5], [7, 8]]. Got {}",
                 shown(name), shown(text));
    settings[name] = std::move(value);
  }
  return settings;
}

}  // namespace posenc::cli
