#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "posenc/core/scale.h"
#include "posenc/sinusoid/preset.h"

namespace posenc::cli {

/// The `--param key=value` options of a command line.
class Params {
 public:
  /// Each entry has the form key=value (checked by the command line); keys are unique.
  explicit Params(const std::vector<std::string>& assignments = {});

  /// Throws CommandError, suggesting the nearest names, for a key that `subject` does not accept.
  void allow(const std::string& subject, const std::vector<std::string>& known) const;

  std::optional<int64_t> integer(const std::string& key) const;
  std::optional<double> real(const std::string& key) const;
  std::optional<std::string> text(const std::string& key) const;
  bool flag(const std::string& key, bool otherwise) const;
  /// none, sqrt_dim or a number.
  Scale scale(const std::string& key, const Scale& otherwise) const;
  /// All of them, for preset(), which checks names and values.
  PresetParams for_preset() const;

 private:
  const std::string* find(const std::string& key) const;

  std::map<std::string, std::string> values_;
};

}  // namespace posenc::cli
