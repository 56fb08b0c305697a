// save_pretrained() of a decoder-only language model: its encoder, and the output layer as a head.

#include <c10/util/Exception.h>

#include <utility>

#include "models/decoder/config.h"
#include "models/save/heads.h"
#include "models/save/write_folder.h"
#include "models/seq2seq/generation_config.h"
#include "models/types/model_class.h"
#include "posenc/models/save_pretrained.h"

namespace posenc {
namespace {

using nlohmann::json;

constexpr const char* kSaveDecoder = "save_pretrained";

// The configuration that the model came with, or that the caller gives it.
Settings config_of(const DecoderImpl& model, const SavePretrainedOptions& options) {
  const std::string& own = model.options.model().origin().config;
  json object = own.empty()
                    ? json::object()
                    : Settings::parse(kSaveDecoder, "the configuration of the model", own).object();
  if (!options.config().empty())
    object.update(
        Settings::parse(kSaveDecoder, "SavePretrainedOptions::config", options.config()).object());
  return Settings::of_object(kSaveDecoder, std::move(object));
}

std::string class_of(const hf::ModelType& type) {
  if (*type.decoder->class_name != '\0') return type.decoder->class_name;
  constexpr std::string_view kEnding = "Model";
  std::string name(*type.model_class == '\0' ? hf::model_class_of(type.type) : type.model_class);
  if (name.ends_with(kEnding)) name.resize(name.size() - kEnding.size());
  return name + "ForCausalLM";
}

void check_same_logits(const DecoderOptions& own, const DecoderOptions& saved,
                       const Settings& config) {
  const std::pair<const char*, bool> options[] = {
      {"head_bias", own.head_bias() == saved.head_bias()},
      {"tied", own.tied() == saved.tied()},
      {"logit_scale", own.logit_scale() == saved.logit_scale()},
      {"logit_softcap", own.logit_softcap() == saved.logit_softcap()}};
  for (const auto& [name, is_same] : options)
    TORCH_CHECK_VALUE(is_same, config.where(), name,
                      " of the decoder must be what config.json says. Got another");
}

}  // namespace

void save_pretrained(const Decoder& model, const std::string& folder,
                     const SavePretrainedOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[save_pretrained] the model must not be an empty holder");
  TORCH_CHECK_VALUE(options.head().is_empty() && options.rest_of().empty(),
                    "[save_pretrained] SavePretrainedOptions::head and rest_of must be empty for a "
                    "Decoder, which is whole. Got one of them");
  const Settings config = config_of(*model, options);
  decoder_part(config);
  const hf::ModelType& type = read_encoder_config(config).model;
  json changed = options.config().empty() ? json::object() : json::parse(options.config());
  changed["tie_word_embeddings"] = model->options.tied();
  SavePretrainedOptions own = options;
  own.config(changed.dump()).head(head_tensors(*model, *type.decoder));
  if (own.architecture().empty()) own.architecture(class_of(type));
  PretrainedFolder contents = pretrained_folder_of(model->model, folder, own, /*is_in_class=*/true);
  const Settings saved = Settings::of_object(kSaveDecoder, contents.config);
  check_same_logits(model->options, decoder_options_of(read_encoder_config(saved)), saved);
  const std::string& origin = model->options.model().origin().folder;
  std::string generation = origin.empty() ? "" : generation_text(origin);
  if (!generation.empty()) contents.texts["generation_config.json"] = std::move(generation);
  write_pretrained(kSaveDecoder, folder, contents);
}

}  // namespace posenc
