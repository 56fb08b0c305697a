#include "cli/command.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc::cli {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    names.push_back(preset.name);
    if (!preset.former_name.empty()) names.push_back(preset.former_name);
  }
  return names;
}

std::vector<std::string> rotary_preset_names() {
  std::vector<std::string> names;
  for (const RotaryPreset& preset : rotary_presets()) names.push_back(preset.name);
  return names;
}

}  // namespace posenc::cli
