#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "posenc/positions/sinusoid/preset.h"

namespace posenc::cli {

/// The `--param key=value` options of a command line.
class Params {
 public:
  /// Each entry has the form key=value (checked by the command line); keys are unique.
  explicit Params(const std::vector<std::string>& assignments = {});

  std::optional<std::string> text(const std::string& key) const;
  /// All of them, for preset(), which checks names and values.
  PresetParams for_preset() const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace posenc::cli
