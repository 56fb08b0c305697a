#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/positions/sinusoid/preset.h"

namespace posenc::recipes {

using Options = SinusoidOptions;

/// The value of a preset's parameter. Each accessor checks type and range, and names preset,
/// parameter and value in its error.
struct Value {
  const std::string &preset, &name, &text;

  double real() const;
  int64_t integer() const;
  /// 0 or 1.
  bool flag() const;
  /// A positive integer.
  int64_t extent() const;
  /// A positive real number.
  double positive() const;

  [[noreturn]] void refuse(const char* rule) const;
};

/// A parameter of a recipe, and how its value changes the options.
struct Parameter {
  PresetParam text;
  void (*set)(Options& options, const Value& value);
};
using Parameters = std::vector<Parameter>;

Parameters operator+(Parameters a, const Parameters& b);

/// `start` and `step`. `of`: what has them, such as "x".
Parameters line(const char* start = "0", const char* step = "1",
                const std::string& of = "position");
/// The base, which systems call by different names.
Parameters base(const char* name, const char* fallback = "10000");
Parameters cos_first();

}  // namespace posenc::recipes
