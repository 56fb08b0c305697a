#include "tokenizers/folder/class_builder.h"

#include <algorithm>

#include "tokenizers/folder/model_files.h"

namespace posenc::text {
namespace {

using nlohmann::json;

// The first charsmap among the normalisers of a tokenizer.json, outside of nested sequences.
std::optional<std::string> charsmap_in(const json& normalizer) {
  json list = json::array();
  if (normalizer.is_object()) {
    list = normalizer.value("type", "") == "Sequence" ? normalizer.value("normalizers", list)
                                                      : json::array({normalizer});
  }
  for (const json& part : list) {
    if (part.is_object() && part.value("type", "") == "Precompiled" &&
        part.contains("precompiled_charsmap")) {
      return part["precompiled_charsmap"].get<std::string>();
    }
  }
  return std::nullopt;
}

}  // namespace

ClassBuilder::ClassBuilder(const FolderFiles& files, Settings tokenizer_config,
                           std::optional<Definition> file, std::string tokenizer_class)
    : BaseConstructor(
          Arguments(files, std::move(tokenizer_config), file ? &file->added_tokens : nullptr),
          std::move(tokenizer_class)),
      files_(files),
      file_(std::move(file)) {
  settings.model_input_names = {"input_ids", "attention_mask"};
  if (file_) charsmap_ = charsmap_in(file_->normalizer);
}

void ClassBuilder::take_file() {
  if (!file_) {
    refuse("its files", "include tokenizer.json",
           "a folder of class " + settings.tokenizer_class + " without it",
           TokenizerErrorCode::File);
  }
  definition = std::move(*file_);
  file_->truncation = definition.truncation;
  file_->padding = definition.padding;
  file_->post_processor = definition.post_processor;
}

ModelDefinition& ClassBuilder::begin_model(ModelDefinition::Kind kind,
                                           const VocabularyFiles& files) {
  if (file_) {
    definition.strings = file_->strings;
    definition.merge_strings = file_->merge_strings;
    definition.model = vocabulary_of(std::move(file_->model), kind);
  } else {
    read_model_files(*this, kind, files);
  }
  return definition.model;
}

void ClassBuilder::set_default_sides() {
  const auto left = [](const json& block) {
    return block.value("direction", "Right") == "Left" ? "left" : "right";
  };
  if (file_ && file_->truncation.is_object())
    arguments.set_default("truncation_side", left(file_->truncation));
  if (file_ && file_->padding.is_object()) {
    const json pad = file_->padding.value("pad_token", json("[PAD]"));
    if (!is_passed("pad_token")) arguments.set_default("pad_token", Settings(pad));
    arguments.set_default("padding_side", left(file_->padding));
  }
}

// Those of added_tokens_decoder, then those special tokens that neither it nor tokenizer.json has.
void ClassBuilder::add_folder_tokens() {
  std::vector<AddedToken> tokens;
  std::vector<GivenToken> named;
  const auto is_special_name = [&](const std::string& text) {
    return std::ranges::any_of(special_tokens_,
                               [&](const auto& known) { return known.second.content == text; });
  };
  const auto add = [&](GivenToken token) {
    if (!token.has_flags || is_special_name(token.content)) token.special = true;
    tokens.push_back(token.added());
  };
  std::vector<std::string> known;
  for (const auto& [id, token] : arguments.added()) {
    known.push_back(token.content);
    add(token);
  }
  const auto is_known = [&](const std::string& text) {
    return ids_->is_added(text) || std::ranges::count(known, text) > 0;
  };
  const auto add_named = [&](const GivenToken& token) {
    if (is_known(token.content) || std::ranges::count(named, token) > 0) return;
    named.push_back(token);
    add(token);
  };
  for (const auto& [name, token] : special_tokens_) add_named(token);
  std::ranges::for_each(extra_, add_named);
  ids_->add(tokens);
}

void ClassBuilder::finish() {
  set_default_sides();
  read_sides();
  adds_bos_ = is_true("add_bos_token");
  adds_eos_ = is_true("add_eos_token");
  if (file_ && !file_->post_processor.is_null()) definition.post_processor = file_->post_processor;
  updates_post_processor_ = arguments.has("add_bos_token") || arguments.has("add_eos_token") ||
                            definition.post_processor.is_null();
  read_special_tokens();
  read_settings();
  settings.clean_up_tokenization_spaces =
      settings.clean_up_tokenization_spaces &&
      (definition.model.kind != ModelDefinition::Kind::Bpe ||
       is_true("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"));

  ids_ = std::make_unique<TokenIds>(definition);
  ids_->add(definition.added_tokens);
  add_folder_tokens();
  fix_mistral_regex(*this);
  if (updates_post_processor_) update_post_processor();
}

void ClassBuilder::post_init() {
  std::vector<AddedToken> tokens;
  const auto add = [&](GivenToken token) {
    token.special = true;
    tokens.push_back(token.added());
  };
  for (const auto& [name, token] : special_tokens_) add(token);
  for (const GivenToken& token : extra_) add(token);
  ids_->add(tokens);
  if (updates_post_processor_ || definition.post_processor.is_null()) update_post_processor();
}

void ClassBuilder::append_extra(const std::vector<std::string>& tokens) {
  for (const std::string& token : tokens) {
    if (std::ranges::count(extra_, token, &GivenToken::content) == 0) extra_.emplace_back(token);
  }
}

void ClassBuilder::restore_flags() {
  std::vector<AddedToken> tokens;
  const auto add = [&](const GivenToken& token) {
    GivenToken plain(token.content);
    plain.special = true;
    tokens.push_back(plain.added());
  };
  for (const auto& [name, token] : special_tokens_) add(token);
  for (const GivenToken& token : extra_) add(token);
  ids_->add(tokens);
}

std::optional<uint64_t> ClassBuilder::id(const std::string& token) const {
  const std::optional<uint64_t> found = ids_->find(token);
  if (found || !has_named("unk_token")) return found;
  return ids_->find(named_text("unk_token"));
}

uint64_t ClassBuilder::required_id(const std::string& token) const {
  const std::optional<uint64_t> found = id(token);
  if (!found)
    refuse("the vocabulary", "have the tokens of " + settings.tokenizer_class,
           "none for " + shown(token));
  return *found;
}

uint64_t ClassBuilder::named_id(const char* name, uint64_t otherwise) const {
  const auto found =
      std::ranges::find(special_tokens_, name, [](const auto& known) { return known.first; });
  return found == special_tokens_.end() ? otherwise : required_id(found->second.content);
}

FolderTokenizer ClassBuilder::result() && {
  definition.added_tokens = ids_->added();
  write_special_tokens();
  return {std::move(definition), std::nullopt, std::move(settings)};
}

}  // namespace posenc::text
