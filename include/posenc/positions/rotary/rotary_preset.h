#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/export.h"
#include "posenc/positions/rotary/rotary.h"

namespace posenc POSENC_EXPORT {

/// A named rotary embedding, as a real system computes it.
struct RotaryPreset {
  std::string name;     ///< its name
  std::string source;   ///< the class and the system, with its version
  std::string summary;  ///< its distinguishing features, in a few words
  /// Its options at dim 0, which rotary_preset() replaces.
  RotaryOptions options;
  /// Sets the options that the system derives from dim, such as axis_dims; null: none.
  void (*derive)(RotaryOptions& options) = nullptr;
  /// Other classes and systems with these bits in float32, bfloat16 and float16, with what to set
  /// for them in parentheses.
  std::vector<std::string> also = {};
};

/// All presets in a fixed order.
const std::vector<RotaryPreset>& rotary_presets();

/// Returns the preset with the given name.
///
/// Errors: c10::ValueError, listing the nearest names, if there is no such preset.
const RotaryPreset& find_rotary_preset(std::string_view name);

/// Returns the options with which `dim` channels rotate as in that system. Base, scaling and
/// sections differ between the models of a system:
/// ```cpp
/// auto options = posenc::rotary_preset("llama", 128).base(500000.0);
/// ```
///
/// Errors: c10::ValueError for an unknown preset, listing the nearest names.
RotaryOptions rotary_preset(std::string_view name, int64_t dim);

}  // namespace posenc
