#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// The value of a preset's parameter: a number, or a word such as `bi`. Numbers are kept as their
/// shortest text, which is what a command line brings too.
struct PresetValue {
  PresetValue(int value);                                     // NOLINT: a value is a value
  PresetValue(int64_t value);                                 // NOLINT
  PresetValue(double value);                                  // NOLINT
  PresetValue(std::string value) : text(std::move(value)) {}  // NOLINT
  PresetValue(const char* value) : text(value) {}             // NOLINT
  std::string text;
};
using PresetParams = std::map<std::string, PresetValue>;

/// A parameter that a preset takes.
struct PresetParam {
  std::string name;
  std::string fallback;  ///< its value where none is given; empty: it has to be given
  std::string meaning;
};

class PresetReader;  // gives a preset's recipe its parameters, checked

/// A sinusoid that some system computes, under a name.
struct Preset {
  std::string name;
  std::string source;   ///< the class and the system, with its version
  std::string storage;  ///< how that system keeps the table: kind, key, shape, persistence
  std::string recipe;   ///< presets with the same recipe have the same bits at every dimension
  std::vector<PresetParam> params;
  SinusoidOptions (*make)(int64_t dim, const PresetReader& params);
  /// The largest difference from the system's own table at position p, where bits cannot be equal
  /// by nature (TensorFlow's kernels are not LibTorch's); empty: the bits are equal.
  std::string bound;
};

/// All presets, in a fixed order, those with one recipe together.
const std::vector<Preset>& presets();

/// The preset of that name. Throws c10::ValueError with the nearest names when there is none.
const Preset& find_preset(std::string_view name);

/// The options that reproduce the named system's table bit for bit at width `dim`.
/// Throws c10::ValueError for an unknown preset or parameter (with the nearest names), a missing or
/// ill-typed one, and a dimension that the recipe cannot have.
SinusoidOptions preset(std::string_view name, int64_t dim, const PresetParams& params = {});

}  // namespace posenc
