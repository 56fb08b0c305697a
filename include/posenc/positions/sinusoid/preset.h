#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/export.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

/// The value of a preset's parameter: a number, or a word such as `bi`. Numbers are stored as their
/// shortest decimal text, the form in which they also come from a command line.
struct PresetValue {
  /// An integer.
  PresetValue(int value);  // NOLINT: implicit by design
  /// An integer.
  PresetValue(int64_t value);  // NOLINT
  /// A number.
  PresetValue(double value);  // NOLINT
  /// A word, or a number as text.
  PresetValue(std::string value) : text(std::move(value)) {}  // NOLINT
  /// A word, or a number as text.
  PresetValue(const char* value) : text(value) {}  // NOLINT

  std::string text;  ///< the value as text
};
/// The parameters of a preset by name.
using PresetParams = std::map<std::string, PresetValue>;

/// A parameter that a preset takes.
struct PresetParam {
  std::string name;      ///< its name
  std::string fallback;  ///< its default; empty if the parameter is required
  std::string meaning;   ///< a description in a few words
};

/// A named sinusoid, as a real system computes it.
struct Preset {
  std::string name;     ///< its name
  std::string source;   ///< the class and the system, with its version
  std::string storage;  ///< how the system stores the table: kind, key, shape, persistence
  std::string recipe;   ///< presets with equal recipes have equal bits at every dim
  std::vector<PresetParam> params = {};  ///< the parameters that it takes
  /// The largest difference from the system's table at position p if the bits cannot be equal,
  /// since TensorFlow's kernels differ from LibTorch's; empty if they are equal.
  std::string bound = {};
  /// Other systems with these bits, with a limitation in parentheses.
  std::vector<std::string> also = {};
  /// The name that the preset had before, which is still accepted; empty if there is none.
  std::string former_name = {};
};

/// All presets in a fixed order, grouped by recipe.
const std::vector<Preset>& presets();

/// Returns the preset with the given name, or former name.
///
/// Errors: c10::ValueError, listing the nearest names, if there is no such preset.
const Preset& find_preset(std::string_view name);

/// Returns the options that reproduce the system's table bit for bit at width `dim`.
///
/// ```cpp
/// posenc::SinusoidOptions whisper = posenc::preset("whisper", 384);
/// torch::Tensor table = posenc::sinusoid_table(whisper, 1500);  // (1500, 384)
/// ```
///
/// Errors: c10::ValueError for an unknown preset or parameter, listing the nearest names, a missing
/// or ill-typed parameter, and a dimension that the recipe does not support.
SinusoidOptions preset(std::string_view name, int64_t dim, const PresetParams& params = {});

}  // namespace posenc
