#pragma once

#include <optional>
#include <span>
#include <string>

#include "models/types/model_types.h"

namespace posenc {

/// The embeddings of a family of models.
struct EncoderEmbeddingsPresetRow {
  const char* name;
  const char* model_type;  ///< as which a configuration without a known model type is read
  const char *source, *formula;
  EmbeddingsStructure structure;
};
struct VisionPresetRow {
  const char* name;
  const char* model_type;
  const char *source, *formula;
  PositionResize resize;
  BuildVision* build;
};

/// All of them.
std::span<const EncoderEmbeddingsPresetRow> encoder_embeddings_preset_rows();
std::span<const VisionPresetRow> vision_preset_rows();

/// The preset `name`. Throws c10::ValueError, with the nearest names, if there is none.
const EncoderEmbeddingsPresetRow& encoder_embeddings_preset_row(const std::string& name);
const VisionPresetRow& vision_preset_row(const std::string& name);

/// The embeddings of a model with the settings of its class.
EncoderEmbeddingsOptions embeddings_of(const Settings& config, const hf::ModelType& model);
VisionEmbeddingsOptions vision_embeddings_of(const Settings& config, const hf::ModelType& model);
/// Those of a preset with settings of no class: timm's.
VisionEmbeddingsOptions vision_embeddings_of(const Settings& config, const VisionPresetRow& preset);

/// Height and width in pixels.
struct VisionSides {
  int64_t height, width;
};
/// The setting `name`: an integer, or a list of height and width. Without a fallback it must be
/// there.
VisionSides vision_sides(const Settings& config, const char* name,
                         std::optional<int64_t> fallback = std::nullopt);

/// Whether the norms of MobileBERT normalise nothing: `normalization_type`.
bool no_norm_in(const Settings& config);

}  // namespace posenc
