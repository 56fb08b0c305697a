#include "posenc/models/inspect_folder.h"

#include <filesystem>

#include "io/base/file.h"
#include "models/encoder/model_table.h"
#include "models/model_folder.h"
#include "models/sentence_folder.h"
#include "models/settings.h"
#include "posenc/models/front_preset.h"
#include "posenc/models/vision_front_preset.h"

namespace posenc {
namespace {

template <typename Models>
std::string preset_in(const Models& models, const std::string& model_type) {
  for (const auto& model : models) {
    if (model.model_type == model_type) return model.preset;
  }
  return "";
}

}  // namespace

FolderInfo inspect_folder(const std::string& folder) {
  FolderInfo info;
  info.weights = weights_in("inspect_folder", folder);
  info.sentence_stages = stages_after_encoder("inspect_folder", folder);
  const auto config = (std::filesystem::path(folder) / "config.json").string();
  if (!io::may_exist(config)) return info;
  info.model_type = Settings("inspect_folder", config).text("model_type", "");
  const CompositeModelRow* whole = find_composite_model(info.model_type);
  const std::string model_type = whole ? whole->encoder : info.model_type;
  info.front_preset = preset_in(front_models(), model_type);
  if (info.front_preset.empty()) {
    info.front_preset = preset_in(vision_front_models(), model_type);
  }
  return info;
}

}  // namespace posenc
