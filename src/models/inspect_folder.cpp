#include "posenc/models/inspect_folder.h"

#include <filesystem>

#include "io/base/file.h"
#include "models/embeddings/model_table.h"
#include "models/embeddings/vision_table.h"
#include "models/encoder/model_table.h"
#include "models/model_folder.h"
#include "models/sentence_folder.h"
#include "models/settings.h"

namespace posenc {
namespace {

// Of an encoder of several models, the part that is loaded.
const char* embeddings_preset_of(std::string_view model_type) {
  if (is_composite_model(model_type))
    model_type = hf::ConfigClass::of(model_type).part_type("text_config");
  if (const EncoderEmbeddingsModelRow* row = find_embeddings_model(model_type)) return row->preset;
  const VisionModelRow* row = find_vision_model(model_type);
  return row == nullptr ? "" : row->preset;
}

}  // namespace

FolderInfo inspect_folder(const std::string& folder) {
  FolderInfo info;
  info.weights = weights_in("inspect_folder", folder);
  info.sentence_stages = stages_after_encoder("inspect_folder", folder);
  const auto config = (std::filesystem::path(folder) / "config.json").string();
  if (!io::may_exist(config)) return info;
  info.model_type = Settings("inspect_folder", config).text("model_type", "");
  info.embeddings_preset = embeddings_preset_of(info.model_type);
  return info;
}

}  // namespace posenc
