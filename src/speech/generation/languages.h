#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The languages that Whisper knows, and the tokens of a folder that mean them.
namespace posenc::speech {

struct Language {
  std::string_view name, code;  ///< "german", "de"
};
const std::vector<Language>& known_languages();

/// Tokens by their texts, such as <|en|> or a task.
using TokenMap = std::map<std::string, int64_t>;

/// The id of `language`, a key of `ids`, a name or a code, in any case. Throws c10::ValueError with
/// `label` in front.
int64_t language_token(const std::string& language, const TokenMap& ids, const std::string& label);

/// The code of a language's token: "en" of <|en|>; empty for a token that means none.
std::string language_of(int64_t token, const TokenMap& ids);

}  // namespace posenc::speech
