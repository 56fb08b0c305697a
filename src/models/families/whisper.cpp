// Whisper: BART's layers without a bias of keys, below two convolutions over frames of sound.

#include <algorithm>
#include <utility>

#include "models/families/family.h"

namespace posenc::families {
namespace {

constexpr const char* kWhisperClass = "WhisperForConditionalGeneration";
constexpr const char* kWhisperTable = "model.decoder.embed_tokens.weight";

// Two classes of the type have other parts.
void check_whisper_class(const Settings& config) {
  const nlohmann::json& classes = config.value("architectures");
  if (!classes.is_array()) return;
  const std::pair<const char*, const char*> others[] = {
      {"WhisperForAudioClassification", "a classifier of sound"},
      {"WhisperForCausalLM", "a decoder alone, for speculative decoding"}};
  for (const auto& [name, what] : others) {
    TORCH_CHECK_VALUE(std::find(classes.begin(), classes.end(), name) == classes.end(),
                      config.where(), "architectures must name ", kWhisperClass, ". Got ", name,
                      ", ", what);
  }
}

TransformerOptions whisper_options(const Settings& config, const Seq2SeqStructure&) {
  check_whisper_class(config);
  TransformerOptions options(0, config.integer("vocab_size", 1, kBartMostTokens));
  read_bart_layers(config, options);
  const int64_t width = options.d_model();
  if (width % 2 != 0 || width < 4)
    config.refuse("d_model", "must be even, and at least 4: a sinusoid has halves");
  const AudioEmbeddingsOptions features(
      config.integer("num_mel_bins", 1, kBartMostWide), width,
      2 * config.integer("max_source_positions", 1, kBartMostPositions));
  options.src_features(AudioEmbeddingsOptions(features).dropout(options.dropout()))
      .max_len(config.integer("max_target_positions", 1, kBartMostPositions))
      .learned_positions(true)
      .scale(Scale::None)
      .padding_idx(config.token_if("pad_token_id", options.tgt_vocab()))
      .norm_first(true)
      .key_bias(false)
      .output_bias(false);
  return options;
}

nlohmann::json whisper_settings(const TransformerOptions& options, const Settings& config,
                                const Seq2SeqStructure&) {
  nlohmann::json settings = bart_layer_settings(options, config);
  settings.update(
      {{"vocab_size", options.tgt_vocab()}, {"max_target_positions", options.max_len()}});
  if (const auto& features = options.src_features()) {
    settings.update({{"num_mel_bins", features->num_mel_bins()},
                     {"max_source_positions", features->num_positions()}});
  }
  if (options.tie() != Tying::None) settings["tie_word_embeddings"] = true;
  return settings;
}

VocabularyNames whisper_vocabulary(const Settings& config, const Seq2SeqStructure&) {
  VocabularyNames names = {"", "", kWhisperTable, "proj_out.weight", {}, true};
  names.are_tied = config.flag("tie_word_embeddings");
  if (names.are_tied) names.order = {names.decoder, names.head};
  return names;
}

KeyMap whisper_renames(const Seq2SeqStructure&) {
  return {{"encoder.*", "model.encoder.*"},
          {"decoder.*", "model.decoder.*"}};  // of a headless model
}

// {theirs, ours}.
KeyMap whisper_keys(const TransformerOptions&) {
  KeyMap keys = bart_layer_keys();
  keys.emplace_back("model.encoder.conv*", "src_features.conv*");
  keys.emplace_back(KeySource::unsqueezed("model.encoder.embed_positions.weight", 0),
                    "src_features.position_encoding.pe");
  keys.emplace_back("model.decoder.embed_positions.weight",
                    "tgt_embedding.position_embedding.weight");
  return keys;
}

constexpr Seq2SeqFamily kWhisperLike = {
    whisper_options, whisper_settings,          whisper_vocabulary,        whisper_renames,
    whisper_keys,    "model.encoder.layers.*.", "model.decoder.layers.*.", "fc1.weight",
    "model.",        "max_source_positions"};

constexpr Seq2SeqStructure kWhisperSeq2Seq = {
    .family = &kWhisperLike, .is_of_speech = true, .norm_first = true, .has_logits_bias = false};

// clang-format off
constexpr ModelType kWhisperTypes[] = {
    {.type = "whisper", .seq2seq = &kWhisperSeq2Seq},
};
// clang-format on

}  // namespace

constinit const Family whisper = kWhisperTypes;

}  // namespace posenc::families
