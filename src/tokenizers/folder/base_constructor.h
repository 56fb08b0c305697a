#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizers/folder/arguments.h"
#include "tokenizers/folder/folder.h"

namespace posenc::text {

/// What transformers' PreTrainedTokenizerBase makes of its arguments, whatever the tokenizer: the
/// named tokens, and the settings.
class BaseConstructor {
 public:
  using Named = std::optional<GivenToken>;

  Arguments arguments;
  FolderSettings settings;

  /// A named token with the constructor's default.
  Named named(const char* name, const char* otherwise);
  Named named(const char* name, Named otherwise);
  /// The same for one that is a plain string by default, and gets flags: see with_flags().
  Named flagged(const char* name, const char* otherwise, bool lstrip,
                std::optional<bool> normalized = std::nullopt, bool special = false);
  /// The token's text; "None" for none, as Python's str().
  static std::string text_of(const Named& token) { return token ? token->content : "None"; }
  /// A token that the constructor has named, and its text.
  Named passed(const char* name) const;
  std::string passed_text(const char* name) const { return text_of(passed(name)); }
  /// The folder's additional_special_tokens.
  std::vector<GivenToken> given_extra() const {
    return arguments.tokens("additional_special_tokens").value_or(std::vector<GivenToken>());
  }
  /// Tokens beside the named ones, unless the folder has its own list in extra_special_tokens.
  void set_extra(std::vector<GivenToken> tokens);

  /// After the constructor: whether there is a named token.
  bool has_named(const char* name) const;
  /// Its text. Throws TokenizerError for none.
  std::string named_text(const char* name) const;
  /// Its text; "None" for none.
  std::string text_or_none(const char* name) const {
    return has_named(name) ? named_text(name) : "None";
  }

 protected:
  BaseConstructor(Arguments given, std::string tokenizer_class);

  Named& keep(const char* name, Named token);
  bool is_passed(const char* name) const;
  void read_sides();
  void read_special_tokens();
  void read_settings();
  /// Whether Python takes an argument for true.
  bool is_true(const char* name) const;
  /// Writes the special tokens to `settings`.
  void write_special_tokens();

  std::vector<std::pair<std::string, Named>> named_;  // as the constructor passes them on
  std::vector<std::pair<std::string, GivenToken>> special_tokens_;  // _special_tokens_map
  std::vector<GivenToken> extra_;                                   // _extra_special_tokens
};

}  // namespace posenc::text
