#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/translate/added_tokens.h"

namespace posenc::cli {

/// What the JSON files beside a tokenizer's vocabulary say: tokenizer_config.json, and where that
/// has no added_tokens_decoder, special_tokens_map.json, added_tokens.json and tokenizer.json, as
/// transformers reads them. Each may be missing.
struct TokenizerSettings {
  std::string end = "</s>", unknown = "<unk>";
  std::vector<std::string> specials;  ///< left out of translations; in the order of their new ids
  std::map<int64_t, AddedToken> added;
  bool has_two_vocabularies = false, cleans_up = false, splits_specials = false;
};

/// Throws Refused, which names the file and the setting, for what is not supported.
TokenizerSettings read_tokenizer_settings(const std::string& folder);

}  // namespace posenc::cli
