#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/export.h"
#include "posenc/positions/relative/setting.h"

namespace posenc POSENC_EXPORT {

/// What a preset computes with.
struct RelativeInputs {
  std::map<std::string, RelativeSetting> settings;  ///< those that the preset names, and sizes
  std::map<std::string, at::Tensor> tensors;  ///< inputs, and parameters as `w.` and their name
};

/// What it returns, where the system has it: `bias`, `scores` (the input of the softmax), `mask`,
/// `table` (resized), `output` (values with a relative term).
using RelativeOutputs = std::map<std::string, at::Tensor>;

/// A named relative position encoding, as a real system computes it.
struct RelativePreset {
  std::string name;                   ///< its name
  std::string source;                 ///< the class and the system, with its version
  std::string summary;                ///< its distinguishing features, in a few words
  std::vector<std::string> settings;  ///< those that it needs, beside `dtype`; without defaults
  std::vector<std::string> tensors;   ///< the tensors that it takes; some only with some settings
  std::vector<std::string> outputs;   ///< the tensors that it returns
};

/// All presets in a fixed order.
const std::vector<RelativePreset>& relative_presets();

/// Returns the preset with the given name.
///
/// Errors: c10::ValueError, listing the nearest names, if there is no such preset.
const RelativePreset& find_relative_preset(std::string_view name);

/// Computes a preset with the bits of its system's own class.
///
/// Errors: c10::ValueError for an unknown preset, a setting or a tensor that is missing or has
/// another type or shape, and a tensor that the preset does not take; each names it. Settings,
/// boxes and positions that the original class takes are taken, such as boxes outside of 0 to 1000.
/// c10::TypeError for a tensor of another dtype.
RelativeOutputs relative_outputs(std::string_view preset, const RelativeInputs& inputs);

}  // namespace posenc
