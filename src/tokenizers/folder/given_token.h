#pragma once

#include <optional>
#include <string>

#include "tokenizers/definition/definition.h"
#include "tokenizers/folder/files.h"

namespace posenc::text {

/// A token as a folder or a class of transformers gives it: a string, or an AddedToken with flags.
struct GivenToken {
  std::string content;
  bool has_flags = false;
  bool single_word = false, lstrip = false, rstrip = false, special = false;
  std::optional<bool> normalized;  // unless set, the opposite of `special`

  /// A plain string.
  explicit GivenToken(std::string text) : content(std::move(text)) {}
  /// With the flags of an added token.
  explicit GivenToken(const AddedToken& token);
  /// With the flags of a JSON object. Throws TokenizerError, which names `name`.
  static GivenToken with_flags(const Settings& object, const std::string& name);

  AddedToken added() const;
  /// Whether Python finds them equal: two strings, or two AddedTokens of the same effect.
  bool operator==(const GivenToken& other) const;
};

/// The token of a value: a string, or an object with `"__type": "AddedToken"`; nothing for null.
/// Throws TokenizerError, which names `name`, for anything else.
std::optional<GivenToken> given_token(const Settings& value, const std::string& name);

/// The other way round, for values that are read again by given_token().
Settings as_setting(const GivenToken& token);

/// Whether as_setting() made this object.
bool is_converted(const Settings& value);

}  // namespace posenc::text
