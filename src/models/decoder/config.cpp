// What a config.json says of a decoder-only language model beside its layers.

#include "models/decoder/config.h"

#include <c10/util/Exception.h>

namespace posenc {
namespace {

double factor_in(const Settings& config, const char* name) {
  const double value = config.real(name);
  if (value == 0.0) config.refuse(name, "must not be 0");
  return value;
}

}  // namespace

std::string decoder_part(const Settings& config) {
  const std::string type = config.text("model_type", "");
  const hf::ModelType* const model = hf::find_model_type(type);
  if (model != nullptr && model->decoder != nullptr) return "";
  TORCH_CHECK_VALUE(model == nullptr || model->seq2seq == nullptr, config.where(), "model_type ",
                    type, " is an encoder-decoder: load_seq2seq() loads it");
  TORCH_CHECK_VALUE(model == nullptr || *model->lacks == '\0', config.where(), "model_type ", type,
                    " is not supported: it needs ", model == nullptr ? "" : model->lacks);
  TORCH_CHECK_VALUE(!config.has("text_config"), config.where(), "model_type ", type,
                    " is not supported: it is a model of texts and other inputs, whose language "
                    "model, in text_config, is not loaded by itself");
  hf::refuse_model_type(config.where(),
                        "model_type must be that of a decoder-only language model that posenc has",
                        type, decoder_model_types());
}

DecoderOptions decoder_options_of(const EncoderConfig& config) {
  const DecoderStructure& structure = *config.model.decoder;
  const Settings& own = config.settings;
  own.refuse_nulls(hf::ConfigClass::of(config.model.type));
  if (structure.check != nullptr) structure.check(own);
  TORCH_CHECK_VALUE(config.options.causal(), own.where(),
                    "the attention of a decoder must be causal. Got a configuration with attention "
                    "in both directions, which load_encoder() loads");
  DecoderOptions options(EncoderOptions(config.options).pooling(encoder::Pooling::None));
  options.tied(own.flag("tie_word_embeddings", true)).head_bias(structure.has_bias);
  if (*structure.scale_setting != '\0')
    options.logit_scale(factor_in(own, structure.scale_setting));
  if (*structure.divisor_setting != '\0')
    options.logit_scale(1.0 / factor_in(own, structure.divisor_setting));
  if (*structure.softcap_setting != '\0' && own.has(structure.softcap_setting)) {
    options.logit_softcap(own.real(structure.softcap_setting));
    if (!(*options.logit_softcap() > 0.0))
      own.refuse(structure.softcap_setting, "must be positive");
  }
  if (*structure.restart_setting != '\0')
    options.restart_length(own.integer(structure.restart_setting, 1, INT32_MAX) + 1);
  options.max_positions(own.integer_if("max_position_embeddings"));
  if (*structure.max_tokens_setting != '\0')
    options.max_tokens(own.integer(structure.max_tokens_setting, 1, INT32_MAX));
  return options;
}

DecoderOptions decoder_options_from_hf(const std::string& config) {
  const Settings settings = Settings::path_or_text("decoder_options_from_hf", config);
  decoder_part(settings);
  return decoder_options_of(read_encoder_config(settings));
}

std::vector<std::string> decoder_model_types() {
  std::vector<std::string> types;
  for (const hf::ModelType& model : hf::model_types())
    if (model.decoder != nullptr) types.emplace_back(model.type);
  return types;
}

}  // namespace posenc
