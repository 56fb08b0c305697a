#include "tokenizers/folder/base_constructor.h"

#include <algorithm>

namespace posenc::text {

BaseConstructor::BaseConstructor(Arguments given, std::string tokenizer_class)
    : arguments(std::move(given)) {
  settings.tokenizer_class = std::move(tokenizer_class);
}

BaseConstructor::Named BaseConstructor::named(const char* name, const char* otherwise) {
  return named(name, otherwise ? Named(GivenToken(otherwise)) : Named());
}

BaseConstructor::Named BaseConstructor::named(const char* name, Named otherwise) {
  return keep(name, arguments.named(name, std::move(otherwise)));
}

BaseConstructor::Named& BaseConstructor::keep(const char* name, Named token) {
  const auto known = std::ranges::find(named_, name, &std::pair<std::string, Named>::first);
  if (known != named_.end()) return known->second = std::move(token);
  return named_.emplace_back(name, std::move(token)).second;
}

BaseConstructor::Named BaseConstructor::flagged(const char* name, const char* otherwise,
                                                bool lstrip, std::optional<bool> normalized,
                                                bool special) {
  Named& token = keep(name, arguments.named(name, GivenToken(otherwise)));
  if (token && !token->has_flags) {
    token->has_flags = true;
    token->lstrip = lstrip;
    token->normalized = normalized;
    token->special = special;
  }
  return token;
}

void BaseConstructor::set_extra(std::vector<GivenToken> tokens) {
  Settings list = Settings::array();
  for (const GivenToken& token : tokens) list.push_back(as_setting(token));
  arguments.set_default("extra_special_tokens", std::move(list));
}

BaseConstructor::Named BaseConstructor::passed(const char* name) const {
  const auto found = std::ranges::find(named_, name, &std::pair<std::string, Named>::first);
  return found == named_.end() ? Named() : found->second;
}

bool BaseConstructor::is_passed(const char* name) const {
  return std::ranges::count(named_, name, &std::pair<std::string, Named>::first) > 0;
}

bool BaseConstructor::is_true(const char* name) const {
  const Settings* const value = arguments.find(name);
  return value && !value->is_null() && *value != false && *value != 0 && *value != "";
}

void BaseConstructor::read_sides() {
  const auto side = [&](const char* name, bool& is_left) {
    const Settings* const value = arguments.find(name);
    if (!value) return;
    if (*value != "left" && *value != "right") refuse(name, "be left or right", shown(*value));
    is_left = *value == "left";
  };
  side("padding_side", settings.pads_left);
  side("truncation_side", settings.truncates_left);
}

void BaseConstructor::read_special_tokens() {
  const auto passed = [&](const char* name) {
    const auto found = std::ranges::find(named_, name, &std::pair<std::string, Named>::first);
    return found != named_.end() ? found->second : arguments.named(name, std::nullopt);
  };
  for (const char* name : kNamedTokens) {
    if (const Named token = passed(name)) special_tokens_.emplace_back(name, *token);
  }
  const std::vector<std::pair<std::string, GivenToken>> own = arguments.own_named();
  for (const auto& [name, token] :
       named_) {  // those that only the class has; the folder's value counts
    if (std::ranges::count(kNamedTokens, name) > 0 || !token) continue;
    const auto given = std::ranges::find(own, name, &std::pair<std::string, GivenToken>::first);
    special_tokens_.emplace_back(name, given != own.end() ? given->second : *token);
  }
  for (const auto& one : own) {
    if (std::ranges::none_of(special_tokens_,
                             [&](const auto& known) { return known.first == one.first; })) {
      special_tokens_.emplace_back(one.first, one.second);
    }
  }
  const bool has_extra = arguments.has("extra_special_tokens");
  extra_ = arguments.tokens(has_extra ? "extra_special_tokens" : "additional_special_tokens")
               .value_or(std::vector<GivenToken>());
}

void BaseConstructor::read_settings() {
  const char* const length = arguments.has("model_max_length") ? "model_max_length" : "max_len";
  if (const Settings* const value = arguments.find(length); value && !value->is_null()) {
    if (!value->is_number()) refuse(length, "be a number", shown(*value));
    constexpr double kMost = 1e18;  // transformers writes 1e30 for none
    if (value->get<double>() < kMost) settings.model_max_length = value->get<int64_t>();
  }
  if (const Settings* const names = arguments.find("model_input_names")) {
    if (!names->is_array()) refuse("model_input_names", "be a list of names", shown(*names));
    settings.model_input_names.clear();
    for (const Settings& name : *names)
      settings.model_input_names.push_back(name.is_string() ? name.get<std::string>() : "");
  }
  settings.clean_up_tokenization_spaces = is_true("clean_up_tokenization_spaces");
  settings.split_special_tokens = is_true("split_special_tokens");
}

void BaseConstructor::write_special_tokens() {
  for (const auto& [name, token] : special_tokens_)
    settings.special_tokens.emplace_back(name, token.content);
  for (const GivenToken& token : extra_) settings.extra_special_tokens.push_back(token.content);
}

bool BaseConstructor::has_named(const char* name) const {
  return std::ranges::any_of(special_tokens_,
                             [&](const auto& known) { return known.first == name; });
}

std::string BaseConstructor::named_text(const char* name) const {
  const auto found =
      std::ranges::find(special_tokens_, name, [](const auto& known) { return known.first; });
  if (found == special_tokens_.end())
    refuse(name, "be there for " + settings.tokenizer_class, "none");
  return found->second.content;
}

}  // namespace posenc::text
