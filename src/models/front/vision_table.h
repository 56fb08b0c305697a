#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/settings.h"
#include "posenc/nn/vision_front_options.h"

namespace posenc {

/// The defaults of a model's configuration class.
struct VisionDefaults {
  int64_t image = 224, patch = 16, hidden = 768;
  int64_t registers = 0, classes = 1;
  bool masks = false;     ///< whether there is a mask token
  bool positions = true;  ///< whether there is a table of positions
};

/// Completes the options of a vision front that have the sizes of a configuration and ViT's
/// structure.
using BuildVision = void (*)(const Settings& config, const VisionDefaults& defaults,
                             VisionFrontOptions& options);

/// The front of a family of models.
struct VisionPresetRow {
  const char *name, *source, *formula;
  PositionResize resize;
  BuildVision build;
  VisionDefaults defaults;
};

/// All of them.
const std::vector<VisionPresetRow>& vision_preset_table();

/// A model type of transformers.
struct VisionModelRow {
  const char* model_type;
  const char* preset;
  VisionDefaults defaults;
  BuildVision build = nullptr;  ///< called after the preset's, for small differences; null: none
};

/// All of them, by preset.
const std::vector<VisionModelRow>& vision_model_table();

/// The side or sides under `name`, {height, width}: a whole number or a list of two.
struct VisionSides {
  int64_t height, width;
};
VisionSides vision_sides(const Settings& config, const char* name, int64_t fallback);

}  // namespace posenc
