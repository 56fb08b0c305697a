#include "cli/translate/tokenizer_settings.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/base/file.h"
#include "models/settings.h"

namespace posenc::cli {
namespace {

using nlohmann::json;

// In bytes; tokenizer.json also holds the vocabulary.
constexpr uint64_t kLongestSettings = 64'000'000;
constexpr int64_t kIdBound = 1 << 24;

// The special tokens of any tokenizer in transformers, in its order.
constexpr const char* kStandard[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                     "pad_token", "cls_token", "mask_token"};

// The settings in a file of the folder; none without it.
Settings settings_in(const std::string& folder, const char* name) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  return io::may_exist(path) ? Settings("translate", path, kLongestSettings)
                             : Settings::of_object("translate", json::object());
}

// The token's text; `token` is the text itself, or an object that describes the token.
std::string text_of(const Settings& file, const std::string& name, const json& token) {
  const json& text = token.is_object() && token.contains("content") ? token["content"] : token;
  if (!text.is_string()) file.refuse(name, "must be a token", token);
  return text.get<std::string>();
}

AddedToken described(const Settings& file, const std::string& name, const json& token) {
  AddedToken result{text_of(file, name, token)};
  const Settings flags = file.within(name, token.is_object() ? token : json::object());
  result.single_word = flags.flag("single_word", false);
  result.strips_left = flags.flag("lstrip", false);
  result.strips_right = flags.flag("rstrip", false);
  return result;
}

void add(const Settings& file, const std::string& name, const json& id, AddedToken token,
         std::map<int64_t, AddedToken>& added) {
  const bool fits = id.is_number_integer() && id >= 0 && id < kIdBound;
  if (!fits) file.refuse(name, "must have whole numbers below 16777216 as ids", id);
  if (!token.text.empty()) added[id.get<int64_t>()] = std::move(token);
}

// Special tokens, with and without the name of a setting.
class Specials {
 public:
  void read(const Settings& file) {
    for (const auto& [name, value] : file.object().items()) {
      if (value.is_null()) continue;
      if (name == "extra_special_tokens" || name == "additional_special_tokens") {
        read_extra(file, name, value);
      } else if (name.ends_with("_token") && (value.is_string() || value.is_object())) {
        named_[name] = text_of(file, name, value);
      } else if (is_standard(name)) {
        file.refuse(name, "must be a token");
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

  void read_extra(const Settings& file, const std::string& name, const json& value) {
    if (value.is_object()) {
      for (const auto& [key, token] : value.items()) named_[key] = text_of(file, name, token);
      return;
    }
    if (!value.is_array()) file.refuse(name, "must be a list of tokens");
    auto& list = name == "extra_special_tokens" ? extra_ : additional_;
    for (const auto& token : value) {
      // Without `__type`, transformers would make a token of the description itself.
      const bool is_text = token.is_string() || (token.is_object() && token.contains("__type"));
      if (!is_text) file.refuse(name, "must be a list of strings", token);
      list.push_back(text_of(file, name, token));
    }
  }

  std::map<std::string, std::string> named_;
  std::vector<std::string> extra_, additional_;
};

void read_added_tokens(const std::string& folder, const Settings& config, Specials& specials,
                       std::map<int64_t, AddedToken>& added) {
  const std::string name = "added_tokens_decoder";
  if (config.mentions(name)) {
    const Settings decoder = config.inside(name);
    for (const auto& [id, token] : decoder.object().items()) {
      if (!token.is_object()) config.refuse(name, "must describe each token by an object", token);
      add(config, name, json::parse(id, nullptr, false), described(config, name, token), added);
    }
    return;
  }
  specials.read(settings_in(folder, "special_tokens_map.json"));
  const Settings ids = settings_in(folder, "added_tokens.json");
  for (const auto& [text, id] : ids.object().items()) add(ids, text, id, {text}, added);
  const Settings whole = settings_in(folder, "tokenizer.json");
  for (const auto& token : whole.value("added_tokens")) {
    add(whole, "added_tokens", token.value("id", json()), described(whole, "added_tokens", token),
        added);
  }
}

}  // namespace

TokenizerSettings read_tokenizer_settings(const std::string& folder) {
  const Settings config = settings_in(folder, "tokenizer_config.json");
  TokenizerSettings settings;
  settings.has_two_vocabularies = config.flag("separate_vocabs", false);
  settings.cleans_up = config.flag("clean_up_tokenization_spaces", false);
  settings.splits_specials = config.flag("split_special_tokens", false);
  if (const json& given = config.value("sp_model_kwargs"); !given.is_null() && !given.empty()) {
    config.refuse("sp_model_kwargs", "must be empty: only SentencePiece's defaults are supported");
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
