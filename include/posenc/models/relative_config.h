#pragma once

#include <map>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/positions/relative/setting.h"
#include "posenc/weights/key_map.h"

namespace posenc POSENC_EXPORT {

/// A `model_type` of Hugging Face's transformers whose relative positions are known.
struct RelativeModel {
  std::string model_type;  ///< as config.json has it
  std::string preset;      ///< the preset of its attention
};

/// All of them, by name.
std::vector<RelativeModel> relative_models();

/// The relative positions of a Hugging Face model.
struct RelativeOptions {
  std::string preset;  ///< of relative_presets()
  /// Those of the preset's settings that the configuration has, to which relative_outputs() needs
  /// the sizes of the call and `dtype`.
  std::map<std::string, RelativeSetting> settings;
  /// The table of a file of the model as the `weight` of a RelativePositionBias, by each of its
  /// names; a file with a table in each layer needs the prefix of one. Empty for a model without
  /// such a table.
  KeyMap key_map;
};

/// The relative positions of a Hugging Face model, from its configuration: the path of a
/// config.json, or its text, which begins with a brace.
///
/// `stack`: `encoder` or `decoder`, whose buckets differ in T5 and its kin.
///
/// Errors: c10::ValueError, naming the key, for an unknown model type (with the nearest names), a
/// setting of the wrong kind, one with which the model has no relative positions, and an unknown
/// stack; WeightsError for a file that cannot be read.
RelativeOptions relative_options_from_hf(const std::string& config,
                                         const std::string& stack = "encoder");

}  // namespace posenc
