#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/settings.h"
#include "posenc/nn/vision_embeddings_options.h"

namespace posenc {

/// Completes the options of vision embeddings that have the sizes of a configuration and ViT's
/// structure.
using BuildVision = void (*)(const Settings& config, VisionEmbeddingsOptions& options);

/// The embeddings of a family of models.
struct VisionPresetRow {
  const char *name, *source, *formula;
  PositionResize resize;
  BuildVision build;
};

/// All of them.
const std::vector<VisionPresetRow>& vision_preset_table();

/// A model type of transformers. Its sizes are those of its configuration class.
struct VisionModelRow {
  const char* model_type;
  const char* preset;
  BuildVision build = nullptr;  ///< called after the preset's, for small differences; null: none
};

/// All of them, by preset. The first row of a preset determines how a configuration without a known
/// model type is read.
const std::vector<VisionModelRow>& vision_model_table();

/// The row of `model_type`, or null.
const VisionModelRow* find_vision_model(std::string_view model_type);

/// The vision embeddings of a model with the settings of its class.
VisionEmbeddingsOptions vision_embeddings_of(const Settings& config, const VisionModelRow& model);

/// The side or sides under `name`, {height, width}: a whole number or a list of two.
struct VisionSides {
  int64_t height, width;
};
VisionSides vision_sides(const Settings& config, const char* name, int64_t fallback);

}  // namespace posenc
