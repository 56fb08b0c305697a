#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/seq2seq/generation_config.h"
#include "posenc/inference/encoded_sources.h"
#include "posenc/inference/generate_options.h"
#include "posenc/speech/transcribe_options.h"
#include "speech/generation/languages.h"

namespace posenc::speech {

using Tokens = std::vector<int64_t>;

/// A try at a window's text.
struct Attempt {
  double temperature;      ///< 0: greedy search or beams
  GenerateOptions search;  ///< without prefixes, lengths and rules of timestamps
};

/// What a call of transformers' generate() for Whisper does, by the folder's settings and its own.
struct RecognitionSettings {
  Settings given;                        ///< both
  int64_t vocab = 0, max_positions = 0;  ///< the model's
  std::vector<Attempt> attempts;
  int64_t pad = -1;                     ///< is no token of a prefix that continues a text; -1: none
  int64_t first_timestamp = 0;          ///< beyond the vocabulary without no_timestamps
  std::optional<TimestampRules> rules;  ///< with no_timestamps
  std::optional<int64_t> prev_sot;
  std::optional<int64_t> max_new_tokens;
  int64_t max_length = 0;

  TokenMap languages, tasks;                      ///< lang_to_id and task_to_id
  bool has_languages = false, has_tasks = false;  ///< whether the folder has them
  std::vector<std::string> language;              ///< none, one for all sounds, or one for each
  bool language_is_list = false;
  std::string language_label;  ///< what errors call it
  std::optional<std::string> task;
  std::vector<std::optional<int64_t>> forced;  ///< after the first token, without the former two

  std::optional<bool> timestamps;          ///< return_timestamps of the call
  bool folder_has_timestamps = false;      ///< and of the folder
  std::vector<LayerHead> alignment_heads;  ///< for words, and median_filter_width
  int64_t median_width = 1;

  Tokens prompt;
  bool keeps_prompt = false;  ///< with conditions: in each window
  bool conditions = false,
       conditions_first = false;  ///< on the text so far, and in the first window
  std::optional<double> compression_ratio, mean_log_probability, no_speech;  ///< thresholds
  std::optional<uint64_t> seed;
};

/// The sizes of a model that settings are checked with.
struct ModelSizes {
  int64_t vocab, bins, max_target_positions, decoder_layers, decoder_heads;
};

/// Those of a call: `settings` are the folder's, which `overrides` replace, and `config` its
/// config.json. `words`: whether times of words are asked for. Throws c10::ValueError that names
/// the setting.
RecognitionSettings recognition_settings(Settings settings, const Settings& config,
                                         const SettingOverrides& overrides, const ModelSizes& sizes,
                                         bool words);

/// Tokens as a file of settings has them, as numbers without a sign.
nlohmann::json json_of(const Tokens& tokens);

/// The settings that the options set, as errors call them. Throws c10::ValueError for `settings`
/// that are no JSON object.
SettingOverrides overrides_of(const TranscribeOptions& options);

}  // namespace posenc::speech
