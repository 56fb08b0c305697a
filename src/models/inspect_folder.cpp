#include "posenc/models/inspect_folder.h"

#include <filesystem>

#include "models/config/model_folder.h"
#include "models/config/settings.h"
#include "models/lora/adapted_folder.h"
#include "models/sentence/sentence_folder.h"
#include "models/sentence/stage_settings.h"
#include "models/types/model_types.h"
#include "weights/common/file.h"

namespace posenc {
namespace {

constexpr const char* kInspect = "inspect_folder";

// Of an encoder of several models, the part that is loaded.
const char* embeddings_preset_of(std::string_view type) {
  const hf::ModelType* model = hf::find_model_type(type);
  if (model != nullptr && *model->part != '\0')
    model = hf::find_model_type(hf::ConfigClass::of(type).part_type(model->part));
  if (model == nullptr) return "";
  return *model->embeddings != '\0' ? model->embeddings : model->vision;
}

}  // namespace

FolderInfo inspect_folder(const std::string& folder, const std::string& base) {
  FolderInfo info;
  const std::string model = config_folder(kInspect, folder_of_model(kInspect, folder), base);
  const auto frozen =
      (std::filesystem::path(folder_of_model(kInspect, folder)) / kFrozenFile).string();
  info.weights = io::may_exist(frozen) ? frozen : weights_in(kInspect, model);
  info.sentence_stages = stages_after_encoder(kInspect, folder);
  if (has_modules(folder)) info.sentence_class = kind_name(sentence_kind(kInspect, folder, base));
  const auto config = (std::filesystem::path(model) / "config.json").string();
  if (!io::may_exist(config)) return info;
  info.model_type = Settings(kInspect, config).text("model_type", "");
  const hf::ModelType* const type = hf::find_model_type(info.model_type);
  info.is_decoder = type != nullptr && type->decoder != nullptr;
  info.is_encoder_decoder = type != nullptr && type->seq2seq != nullptr;
  info.is_of_speech = info.is_encoder_decoder && type->seq2seq->is_of_speech;
  info.embeddings_preset = embeddings_preset_of(info.model_type);
  return info;
}

}  // namespace posenc
