#include "tokenizers/folder/given_token.h"

#include <tuple>

namespace posenc::text {
namespace {

std::optional<bool> flag_of(const Settings& object, const char* flag, const std::string& name) {
  const auto found = object.find(flag);
  if (found == object.end()) return std::nullopt;
  if (!found->is_boolean())
    refuse(name, std::string("have true or false for ") + flag, shown(*found));
  return found->get<bool>();
}

}  // namespace

GivenToken::GivenToken(const AddedToken& token)
    : content(token.content),
      has_flags(true),
      single_word(token.single_word),
      lstrip(token.lstrip),
      rstrip(token.rstrip),
      special(token.special),
      normalized(token.normalized) {}

GivenToken GivenToken::with_flags(const Settings& object, const std::string& name) {
  const auto content = object.find("content");
  if (content == object.end() || !content->is_string())
    refuse(name, "have a string for content", shown(object));
  GivenToken token(content->get<std::string>());
  token.has_flags = true;
  token.single_word = flag_of(object, "single_word", name).value_or(false);
  token.lstrip = flag_of(object, "lstrip", name).value_or(false);
  token.rstrip = flag_of(object, "rstrip", name).value_or(false);
  token.special = flag_of(object, "special", name).value_or(false);
  token.normalized = flag_of(object, "normalized", name);
  return token;
}

AddedToken GivenToken::added() const {
  return {content, single_word, lstrip, rstrip, normalized.value_or(!special),
          special, std::nullopt};
}

bool GivenToken::operator==(const GivenToken& other) const {
  const auto facts = [](const GivenToken& token) {
    return std::tuple(token.content, token.has_flags, token.single_word, token.lstrip, token.rstrip,
                      token.special, token.normalized.value_or(!token.special));
  };
  return facts(*this) == facts(other);
}

bool is_converted(const Settings& value) {
  return value.is_object() && value.contains("__type") && value["__type"] == "GivenToken";
}

std::optional<GivenToken> given_token(const Settings& value, const std::string& name) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return GivenToken(value.get<std::string>());
  if (value.is_object() && value.contains("__type") &&
      (value["__type"] == "AddedToken" || is_converted(value))) {
    return GivenToken::with_flags(value, name);
  }
  refuse(name, "be a string, null or an AddedToken", shown(value));
}

Settings as_setting(const GivenToken& token) {
  if (!token.has_flags) return token.content;
  Settings object = {{"__type", "GivenToken"},           {"content", token.content},
                     {"single_word", token.single_word}, {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},           {"special", token.special}};
  if (token.normalized) object["normalized"] = *token.normalized;
  return object;
}

}  // namespace posenc::text
