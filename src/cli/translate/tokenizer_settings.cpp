#include "cli/translate/tokenizer_settings.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/error.h"
#include "io/base/file.h"
#include "io/base/json.h"
#include "io/base/text.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;  // transformers uses the file's token order

constexpr uint64_t kLongestSettings =
    64'000'000;  // in bytes; tokenizer.json also holds the vocabulary
constexpr int64_t kIdBound = 1 << 24;
constexpr std::size_t kMostShown = 80;  // of a value, in an error message

// The special tokens of any tokenizer in transformers, in its order.
constexpr const char* kStandard[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                     "pad_token", "cls_token", "mask_token"};

// Reads settings from one file.
class Object {
 public:
  Object(const std::string& folder, const char* name)
      : path_((std::filesystem::path(folder) / name).string()), values_(Json::object()) {
    if (!io::may_exist(path_)) return;
    const io::InputFile file(path_);
    if (file.size() > kLongestSettings) {
      cli::fail("{}: must have at most {} bytes. Got {}", path_, kLongestSettings, file.size());
    }
    try {
      values_ = io::json_tree<Json>(file.read(0, file.size()), "its settings");
    } catch (const WeightsError& error) {
      throw error.in_file(path_);
    }
    if (!values_.is_object()) {
      cli::fail("{}: must be a JSON object. Got {}", path_, values_.type_name());
    }
  }

  const Json& values() const { return values_; }
  /// null if absent.
  const Json& value(const std::string& name) const {
    static const Json kAbsent;
    const auto found = values_.find(name);
    return found == values_.end() ? kAbsent : *found;
  }
  bool flag(const char* name) const {
    const Json& given = value(name);
    if (!given.is_null() && !given.is_boolean()) fail(name, given, "must be true or false");
    return given.is_boolean() && given.get<bool>();
  }
  [[noreturn]] void fail(const std::string& name, const Json& got, const char* rule) const {
    cli::fail("{}: {} {}. Got {}", path_, name, rule,
              io::shortened(got.dump(-1, ' ', false, Json::error_handler_t::replace), kMostShown));
  }

 private:
  std::string path_;
  Json values_;
};

// The token's text; `token` is the text itself, or an object that describes the token.
std::string text_of(const Object& file, const std::string& name, const Json& token) {
  const Json& text = token.is_object() && token.contains("content") ? token["content"] : token;
  if (!text.is_string()) file.fail(name, token, "must be a token");
  return text.get<std::string>();
}

AddedToken described(const Object& file, const std::string& name, const Json& token) {
  AddedToken result{text_of(file, name, token)};
  const auto flag = [&](const char* key) {
    const Json given = token.is_object() ? token.value(key, Json()) : Json();
    if (!given.is_null() && !given.is_boolean()) file.fail(name, token, "must have boolean flags");
    return given.is_boolean() && given.get<bool>();
  };
  result.single_word = flag("single_word");
  result.strips_left = flag("lstrip");
  result.strips_right = flag("rstrip");
  return result;
}

void add(const Object& file, const std::string& name, const Json& id, AddedToken token,
         std::map<int64_t, AddedToken>& added) {
  const bool fits = id.is_number_integer() && id >= 0 && id < kIdBound;
  if (!fits) file.fail(name, id, "must have whole numbers below 16777216 as ids");
  if (!token.text.empty()) added[id.get<int64_t>()] = std::move(token);
}

// Special tokens, with and without the name of a setting.
class Specials {
 public:
  void read(const Object& file) {
    for (const auto& [name, value] : file.values().items()) {
      if (value.is_null()) continue;
      if (name == "extra_special_tokens" || name == "additional_special_tokens") {
        read_extra(file, name, value);
      } else if (name.ends_with("_token") && (value.is_string() || value.is_object())) {
        named_[name] = text_of(file, name, value);
      } else if (is_standard(name)) {
        file.fail(name, value, "must be a token");
      }
    }
  }

  std::string named(const char* name, const std::string& fallback) {
    return named_.emplace(name, fallback).first->second;
  }

  // Each token once, in transformers' order: the standard ones, the model's own, then the others.
  std::vector<std::string> all() const {
    std::vector<std::string> result;
    const auto take = [&](const std::string& text) {
      const bool is_new = std::find(result.begin(), result.end(), text) == result.end();
      if (is_new && !text.empty()) result.push_back(text);
    };
    for (const char* name : kStandard) {
      if (const auto found = named_.find(name); found != named_.end()) take(found->second);
    }
    for (const auto& [name, text] : named_) take(text);
    // `additional` is the older name of that setting, used only if the newer one is absent.
    for (const auto& text : extra_.empty() ? additional_ : extra_) take(text);
    return result;
  }

 private:
  static bool is_standard(const std::string& name) {
    return std::find(std::begin(kStandard), std::end(kStandard), name) != std::end(kStandard);
  }

  void read_extra(const Object& file, const std::string& name, const Json& value) {
    if (value.is_object()) {
      for (const auto& [key, token] : value.items()) named_[key] = text_of(file, name, token);
      return;
    }
    if (!value.is_array()) file.fail(name, value, "must be a list of tokens");
    auto& list = name == "extra_special_tokens" ? extra_ : additional_;
    for (const auto& token : value) {
      // Without `__type`, transformers would make a token of the description itself.
      const bool is_text = token.is_string() || (token.is_object() && token.contains("__type"));
      if (!is_text) file.fail(name, token, "must be a list of strings");
      list.push_back(text_of(file, name, token));
    }
  }

  std::map<std::string, std::string> named_;
  std::vector<std::string> extra_, additional_;
};

void read_added_tokens(const std::string& folder, const Object& config, Specials& specials,
                       std::map<int64_t, AddedToken>& added) {
  const std::string name = "added_tokens_decoder";
  if (config.values().contains(name)) {
    if (!config.value(name).is_object()) config.fail(name, config.value(name), "must be an object");
    for (const auto& [id, token] : config.value(name).items()) {
      if (!token.is_object()) config.fail(name, token, "must describe each token by an object");
      add(config, name, Json::parse(id, nullptr, false), described(config, name, token), added);
    }
    return;
  }
  specials.read(Object(folder, "special_tokens_map.json"));
  const Object ids(folder, "added_tokens.json");
  for (const auto& [text, id] : ids.values().items()) add(ids, text, id, {text}, added);
  const Object whole(folder, "tokenizer.json");
  for (const auto& token : whole.value("added_tokens")) {
    add(whole, "added_tokens", token.value("id", Json()), described(whole, "added_tokens", token),
        added);
  }
}

}  // namespace

TokenizerSettings read_tokenizer_settings(const std::string& folder) {
  const Object config(folder, "tokenizer_config.json");
  TokenizerSettings settings;
  settings.has_two_vocabularies = config.flag("separate_vocabs");
  settings.cleans_up = config.flag("clean_up_tokenization_spaces");
  settings.splits_specials = config.flag("split_special_tokens");
  if (const Json& given = config.value("sp_model_kwargs"); !given.is_null() && !given.empty()) {
    config.fail("sp_model_kwargs", given,
                "must be empty: only SentencePiece's defaults are supported");
  }
  Specials specials;
  specials.read(config);
  read_added_tokens(folder, config, specials, settings.added);
  settings.end = specials.named("eos_token", settings.end);
  settings.unknown = specials.named("unk_token", settings.unknown);
  specials.named("pad_token", "<pad>");
  settings.specials = specials.all();
  return settings;
}

}  // namespace posenc::cli
