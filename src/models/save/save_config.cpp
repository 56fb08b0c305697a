#include "models/save/save_config.h"

#include <c10/util/Exception.h>

#include <utility>

#include "models/config/model_folder.h"
#include "models/config/setting_names.h"
#include "models/save/heads.h"
#include "models/save/same.h"
#include "models/save/saved_settings.h"
#include "models/types/model_class.h"

namespace posenc {
namespace {

using nlohmann::json;

constexpr const char* kSave = "save_pretrained";

// The config.json that is completed, and the settings of the caller over it.
json given_config(const EncoderImpl& model, const SavePretrainedOptions& options,
                  const ClassifierImpl* classifier) {
  json config = json::object();
  if (!options.rest_of().empty()) {
    config = model_config(kSave, options.rest_of()).object();
  } else if (!model.options.origin().config.empty()) {
    config =
        Settings::parse(kSave, "the configuration of the encoder", model.options.origin().config)
            .object();
  }
  if (classifier != nullptr) set_labels(config, classifier->options);
  if (!options.config().empty()) {
    config.update(
        Settings::parse(kSave, "SavePretrainedOptions::config", options.config()).object());
  }
  TORCH_CHECK_VALUE(config.contains("model_type"),
                    "[save_pretrained] the options of the encoder must come from load_encoder() or "
                    "encoder_options_from_hf(), or SavePretrainedOptions::config must have all "
                    "settings of its config.json. Got no model_type");
  return config;
}

// Sizes that a program may have changed.
void set_sizes(json& object, const Settings& settings, const EncoderImpl& model,
               const EncoderStructure& structure) {
  if (structure.numbering == nullptr && model.encoder) {
    set_setting(object, settings, "num_hidden_layers",
                static_cast<int64_t>(model.encoder->layers->size()));
  }
  if (!model.embeddings) return;
  const auto& embeddings = *model.embeddings;
  set_setting(object, settings, "vocab_size", embeddings.tokens->weight.size(0));
  if (embeddings.token_types && settings.is_known("type_vocab_size")) {
    set_setting(object, settings, "type_vocab_size", embeddings.token_types->weight.size(0));
  }
  const char* const positions = settings.name_of(hf::kPositions);
  if (embeddings.positions && positions != nullptr) {
    set_setting(object, settings, positions,
                embeddings.positions->weight.size(0) - embeddings.options.position_offset() -
                    embeddings.options.first_position());
  }
}

}  // namespace

SavedConfig saved_config(const EncoderImpl& model, const SavePretrainedOptions& options,
                         const ClassifierImpl* classifier) {
  json object = given_config(model, options, classifier);
  const auto read = [&] { return read_encoder_config(Settings::of_object(kSave, object)); };
  const EncoderConfig before = read();
  const hf::ModelType* const whole = hf::find_model_type(object["model_type"].get<std::string>());
  const std::string part = whole == nullptr ? "" : whole->part;
  const bool keeps_whole =
      part.empty() || !options.rest_of().empty() || hf::model_class_of(before.model.type).empty();
  json own = before.settings.object();
  own["model_type"] = before.model.type;
  set_sizes(own, before.settings, model, before.structure);
  set_defaults(own, before.settings, before.model.type);
  if (before.structure.settle != nullptr && options.rest_of().empty())
    before.structure.settle(own, before.settings);
  if (part.empty() || !keeps_whole) {
    object = std::move(own);
  } else {
    object[part] = std::move(own);
    object.erase(part + "_dict");  // which would replace it
    object[part].erase("torch_dtype");
    if (object[part].contains("dtype")) set_dtype(object[part]);
  }
  set_dtype(object);
  SavedConfig saved{object, read(), !part.empty() && keeps_whole, {}, std::nullopt};
  saved.pooling = saved.encoder.options.pooling();
  if (classifier != nullptr) {
    saved.head.emplace(read_head_config(saved.encoder, classifier->options.kind()));
  }
  saved.encoder.options.origin() = model.options.origin();
  check_same(saved.encoder, model);
  saved.encoder.options.pooling(model.options.pooling());
  return saved;
}

}  // namespace posenc
