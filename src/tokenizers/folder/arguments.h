#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/folder/given_token.h"

namespace posenc::text {

/// What a folder passes to the constructor of its tokenizer's class, as transformers'
/// PreTrainedTokenizerBase._from_pretrained() collects it: tokenizer_config.json and, unless that
/// has an added_tokens_decoder, special_tokens_map.json, added_tokens.json and the added tokens of
/// tokenizer.json.
class Arguments {
 public:
  /// `file_tokens` are the added tokens of tokenizer.json, if there is one. Throws TokenizerError.
  Arguments(const FolderFiles& files, Settings tokenizer_config,
            const std::vector<AddedToken>* file_tokens);

  bool has(const char* name) const { return values_.contains(name); }
  /// The value, which may be null; nothing if there is none.
  const Settings* find(const char* name) const;
  /// Sets a value unless there is one, and if it is only null.
  void set_default(const char* name, Settings value);
  void set(const char* name, Settings value) { values_[name] = std::move(value); }
  /// True or false. Throws TokenizerError for another value.
  bool flag(const char* name, bool otherwise) const {
    return SettingFields(values_).boolean(name, otherwise);
  }
  /// The same, with null for nothing, which is also the value where there is none.
  std::optional<bool> optional_flag(const char* name) const {
    return SettingFields(values_).optional_boolean(name);
  }
  /// A string; `otherwise` where there is none or null. Throws TokenizerError.
  std::string text(const char* name, const std::string& otherwise) const {
    return string_of(values_, name).value_or(otherwise);
  }
  int64_t number(const char* name, int64_t otherwise) const;
  /// Tokens of a list; nothing where there is none or null. Throws TokenizerError.
  std::optional<std::vector<GivenToken>> tokens(const char* name) const;

  /// A named token such as "mask_token"; `otherwise` where the folder does not mention it. Null is
  /// no token.
  std::optional<GivenToken> named(const char* name, std::optional<GivenToken> otherwise) const;
  /// The named tokens that only this folder has, in the order in which it names them.
  std::vector<std::pair<std::string, GivenToken>> own_named() const;
  /// The tokens to add, by their id in the folder, which only says their order.
  const std::map<int64_t, GivenToken>& added() const { return added_; }

 private:
  void separate_own_named();
  void read_added_decoder();
  void read_special_tokens_map(const FolderFiles& files);
  void read_added_tokens_file(const FolderFiles& files);
  void add(int64_t id, GivenToken token);
  void give_flags_to_named();

  Settings values_;
  std::vector<std::pair<std::string, GivenToken>>
      own_named_;  // popped, or of a dictionary of extra tokens
  std::map<int64_t, GivenToken> added_;
  std::map<std::string, GivenToken> added_by_content_;
};

/// The names of the special tokens that every tokenizer of transformers may have, in its order.
extern const char* const kNamedTokens[7];

}  // namespace posenc::text
