#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/translate/added_tokens.h"

namespace posenc::cli {

/// Settings from the JSON files that accompany a vocabulary: tokenizer_config.json and, if it has
/// no added_tokens_decoder, special_tokens_map.json, added_tokens.json and tokenizer.json, as
/// transformers reads them. Each file is optional.
struct TokenizerSettings {
  std::string end = "</s>", unknown = "<unk>";
  std::vector<std::string> specials;  ///< dropped from translations; in the order of their new ids
  std::map<int64_t, AddedToken> added;
  bool has_two_vocabularies = false, cleans_up = false, splits_specials = false;
};

/// Throws c10::ValueError, naming the file and the setting, for unsupported settings.
TokenizerSettings read_tokenizer_settings(const std::string& folder);

}  // namespace posenc::cli
