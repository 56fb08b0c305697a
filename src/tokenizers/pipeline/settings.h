#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace posenc::text {

/// What a folder says of its tokenizer beside what the tokenizer itself is.
struct FolderSettings {
  std::string tokenizer_class;  ///< of transformers, such as "BertTokenizer"
  bool pads_left = false;
  bool truncates_left = false;
  std::optional<int64_t> model_max_length;
  /// The named tokens, such as ("mask_token", "[MASK]"): the seven of transformers in its order,
  /// then those of the folder.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  std::vector<std::string> extra_special_tokens;
  std::vector<std::string> model_input_names;  ///< what the model takes, such as "token_type_ids"
  /// Decoded text has the blanks before punctuation removed. Never set for BPE.
  bool clean_up_tokenization_spaces = false;
  bool split_special_tokens = false;  ///< special tokens in a text are not recognised
  std::string blank_in_decoded;  ///< CLIP: decoded text has it replaced by a blank, and is stripped
  std::string infill_token;      ///< CodeLlama: cuts a single text in two, which is not supported
  /// Whisper: decoded text has no time stamps, and where special tokens are skipped no prompt.
  struct SpeechTokens {
    std::optional<uint64_t> prompt, start;
  };
  std::optional<SpeechTokens> decodes_speech;
  bool decodes_runs_once = false;  ///< Parakeet: equal ids in a row are one, and padding is dropped
};

}  // namespace posenc::text
