#include "tokenizers/folder/arguments.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "posenc/tokenizers/error.h"

namespace posenc::text {

const char* const kNamedTokens[7] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                     "pad_token", "cls_token", "mask_token"};

namespace {

bool is_standard(std::string_view name) { return std::ranges::count(kNamedTokens, name) > 0; }

// Whether Python takes the value for false.
bool is_empty(const Settings& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || value == "" ||
         value == false;
}

int64_t id_of(const std::string& text) {
  int64_t id = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (failure != std::errc() || end != text.data() + text.size()) {
    refuse("added_tokens_decoder", "have integers as names", shown(text));
  }
  return id;
}

}  // namespace

Arguments::Arguments(const FolderFiles& files, Settings tokenizer_config,
                     const std::vector<AddedToken>* file_tokens)
    : values_(std::move(tokenizer_config)) {
  const auto inputs = values_.find("init_inputs");
  if (inputs != values_.end() && !is_empty(*inputs))
    refuse("init_inputs", "be empty", shown(*inputs));
  for (const char* name : {"tokenizer_class", "init_inputs", "auto_map", "chat_template"})
    values_.erase(name);
  if (file_tokens) {
    values_.erase("add_bos_token");
    values_.erase("add_eos_token");
  }
  const auto additional = values_.find("additional_special_tokens");
  if (additional != values_.end() &&
      (!has("extra_special_tokens") || is_empty(values_["extra_special_tokens"]))) {
    values_["extra_special_tokens"] = Settings(*additional);
    values_.erase("additional_special_tokens");
  }
  separate_own_named();
  if (has("added_tokens_decoder")) {
    read_added_decoder();
  } else {
    read_special_tokens_map(files);
    read_added_tokens_file(files);
    if (file_tokens) {
      int64_t next = 0;
      for (const AddedToken& token : *file_tokens) {
        add(token.id ? static_cast<int64_t>(*token.id) : next, GivenToken(token));
        ++next;
      }
    }
  }
  values_.erase("added_tokens_decoder");
  give_flags_to_named();
}

void Arguments::separate_own_named() {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_.items()) {
    if (!is_standard(name) && name.ends_with("_token") && value.is_string()) names.push_back(name);
  }
  for (const std::string& name : names) {
    own_named_.emplace_back(name, GivenToken(values_[name].get<std::string>()));
    values_.erase(name);
  }
  const auto extra = values_.find("extra_special_tokens");
  if (extra == values_.end() || !extra->is_object()) return;
  for (const auto& [name, value] : extra->items()) {
    const std::optional<GivenToken> token = given_token(value, "extra_special_tokens");
    if (!token) refuse("extra_special_tokens", "have tokens as values", "null for " + name);
    const auto known =
        std::ranges::find(own_named_, name, &std::pair<std::string, GivenToken>::first);
    if (known != own_named_.end()) {
      known->second = *token;
    } else {
      own_named_.emplace_back(name, *token);
    }
  }
  values_.erase("extra_special_tokens");
}

void Arguments::add(int64_t id, GivenToken token) {
  added_by_content_.insert_or_assign(token.content, token);
  added_.insert_or_assign(id, std::move(token));
}

void Arguments::read_added_decoder() {
  const Settings& decoder = values_["added_tokens_decoder"];
  if (!decoder.is_object()) refuse("added_tokens_decoder", "be an object", shown(decoder));
  for (const auto& [id, token] : decoder.items()) {
    if (!token.is_object()) refuse("added_tokens_decoder", "have objects as values", shown(token));
    add(id_of(id), GivenToken::with_flags(token, "added_tokens_decoder"));
  }
}

void Arguments::read_special_tokens_map(const FolderFiles& files) {
  Settings map = files.settings("special_tokens_map.json");
  for (auto& [name, value] : map.items()) {
    if (value.is_object() && name != "extra_special_tokens") {
      GivenToken token = GivenToken::with_flags(value, name);
      token.special = true;
      values_[name] = as_setting(token);
    } else if (name == "extra_special_tokens" && value.is_array()) {
      Settings tokens = has("extra_special_tokens") && values_[name].is_array() ? values_[name]
                                                                                : Settings::array();
      for (const Settings& given : value) {
        Settings token = given;
        if (given.is_object()) {
          GivenToken with_flags = GivenToken::with_flags(given, name);
          with_flags.special = true;
          token = as_setting(with_flags);
        }
        if (std::ranges::count(tokens, token) == 0) tokens.push_back(token);
      }
      values_[name] = std::move(tokens);
    } else {
      values_[name] = value;
    }
  }
  const auto extra = values_.find("extra_special_tokens");
  if (extra == values_.end() || !extra->is_object()) return;
  for (const auto& [name, value] : extra->items()) {
    const std::optional<GivenToken> token = given_token(value, "extra_special_tokens");
    if (token) own_named_.emplace_back(name, *token);
  }
  values_.erase("extra_special_tokens");
}

void Arguments::read_added_tokens_file(const FolderFiles& files) {
  const Settings ids = files.settings("added_tokens.json");
  if (ids.empty()) return;
  std::vector<std::string> special;
  const auto note =
      [&](const Settings& value) {  // transformers compares the text of Python's dictionaries
        if (value.is_string() || is_converted(value))
          special.push_back(given_token(value, "")->content);
      };
  for (const char* name : kNamedTokens) {
    if (const Settings* const value = find(name)) note(*value);
  }
  if (const Settings* const extra = find("extra_special_tokens"); extra && extra->is_array()) {
    std::ranges::for_each(*extra, note);
  }
  for (const auto& [content, id] : ids.items()) {
    if (!id.is_number_integer()) refuse("added_tokens.json", "have integers as ids", shown(id));
    GivenToken token(content);
    token.has_flags = true;
    token.special = std::ranges::count(special, content) > 0;
    token.normalized = !token.special;
    add(id.get<int64_t>(), std::move(token));
  }
}

// A named token that is also an added one has its flags.
void Arguments::give_flags_to_named() {
  for (const char* name : kNamedTokens) {
    const std::optional<GivenToken> token = named(name, std::nullopt);
    if (!token) continue;
    const auto found = added_by_content_.find(token->content);
    if (found != added_by_content_.end()) values_[name] = as_setting(found->second);
  }
}

const Settings* Arguments::find(const char* name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &*found;
}

void Arguments::set_default(const char* name, Settings value) {
  if (!has(name)) values_[name] = std::move(value);
}

int64_t Arguments::number(const char* name, int64_t otherwise) const {
  const Settings* const value = find(name);
  if (!value || value->is_null()) return otherwise;
  if (!value->is_number_integer() || value->get<int64_t>() < 0 ||
      value->get<int64_t>() > std::numeric_limits<int32_t>::max()) {
    refuse(name, "be an integer from 0 to 2^31 - 1", shown(*value));
  }
  return value->get<int64_t>();
}

std::optional<std::vector<GivenToken>> Arguments::tokens(const char* name) const {
  const Settings* const value = find(name);
  if (!value || value->is_null()) return std::nullopt;
  if (!value->is_array()) refuse(name, "be a list of tokens", shown(*value));
  std::vector<GivenToken> tokens;
  for (const Settings& given : *value) {
    const std::optional<GivenToken> token = given_token(given, name);
    if (!token) refuse(name, "be a list of tokens", shown(*value));
    tokens.push_back(*token);
  }
  return tokens;
}

std::optional<GivenToken> Arguments::named(const char* name,
                                           std::optional<GivenToken> otherwise) const {
  const Settings* const value = find(name);
  return value ? given_token(*value, name) : otherwise;
}

std::vector<std::pair<std::string, GivenToken>> Arguments::own_named() const {
  std::vector<std::pair<std::string, GivenToken>> tokens;
  for (const auto& [name, value] : values_.items()) {  // first those whose value has flags
    if (is_standard(name) || !std::string_view(name).ends_with("_token")) continue;
    if (!value.is_string() && !(value.is_object() && value.contains("__type"))) continue;
    if (const auto token = given_token(value, name)) tokens.emplace_back(name, *token);
  }
  for (const auto& [name, token] : own_named_) {
    const auto known = std::ranges::find(tokens, name, &std::pair<std::string, GivenToken>::first);
    if (known != tokens.end()) {
      known->second = token;
    } else {
      tokens.emplace_back(name, token);
    }
  }
  return tokens;
}

}  // namespace posenc::text
