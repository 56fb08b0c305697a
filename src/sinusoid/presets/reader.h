#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "posenc/sinusoid/preset.h"

namespace posenc {

/// A preset's parameters, with defaults filled in; each accessor checks type and range, and names
/// preset, parameter and value in its error.
class PresetReader {
 public:
  /// Throws c10::ValueError for a parameter that the preset does not have.
  PresetReader(const Preset& preset, const PresetParams& given);

  double real(const char* name) const;
  int64_t integer(const char* name) const;
  /// 0 or 1.
  bool flag(const char* name) const;
  /// A positive integer.
  int64_t extent(const char* name) const;
  /// A positive real number.
  double positive(const char* name) const;
  const std::string& text(const char* name) const;

  [[noreturn]] void refuse(const char* name, const char* rule) const;

 private:
  const Preset& preset_;
  std::map<std::string, std::string> values_;
};

}  // namespace posenc
