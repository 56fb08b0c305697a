#include "tokenizers/folder/python_builder.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/python/text.h"

namespace posenc::text {

PythonBuilder::PythonBuilder(const FolderFiles& files, Settings tokenizer_config,
                             const std::vector<AddedToken>* file_tokens,
                             std::string tokenizer_class)
    : BaseConstructor(Arguments(files, std::move(tokenizer_config), file_tokens),
                      std::move(tokenizer_class)),
      files_(files) {
  settings.model_input_names = {"input_ids", "attention_mask"};
}

void PythonBuilder::require_file(const char* name) const {
  if (!files_.has(name))
    refuse("its files", std::string("include ") + name,
           "none, for class " + settings.tokenizer_class, TokenizerErrorCode::File);
}

std::shared_ptr<const SentencePieceProcessor> PythonBuilder::load_pieces(const char* name,
                                                                         bool adds_prefix) const {
  if (const Settings* const given = arguments.find("sp_model_kwargs");
      given && !given->is_null() && !given->empty()) {
    refuse("sp_model_kwargs", "be empty: only SentencePiece's defaults are supported",
           shown(*given));
  }
  require_file(name);
  try {
    SentencePieceModel model = read_sentencepiece_proto(files_.read(name));
    if (!adds_prefix) model.normalizer.add_dummy_prefix = false;
    return std::make_shared<SentencePieceProcessor>(std::move(model));
  } catch (const TokenizerError& error) {
    throw error.in_file(files_.path(name));
  }
}

std::shared_ptr<const SentencePieceProcessor> PythonBuilder::sentencepiece(const char* name) const {
  return load_pieces(name, true);
}

std::shared_ptr<const SentencePieceProcessor> PythonBuilder::sentencepiece_backend(
    const char* name) const {
  return load_pieces(name, arguments.flag("legacy", true));
}

std::string PythonBuilder::text_file(const char* name) const {
  require_file(name);
  std::string text = files_.read(name);
  if (!io::is_utf8(text))
    throw TokenizerError("must be UTF-8. Got other bytes").in_file(files_.path(name));
  replace_all(text, "\r\n", "\n");
  std::ranges::replace(text, '\r', '\n');
  return text;
}

std::shared_ptr<const Vocabulary> PythonBuilder::json_vocabulary(const char* name) const {
  require_file(name);
  try {
    Definition definition;
    read_vocabulary(files_.read(name), definition);
    auto vocabulary = std::make_shared<Vocabulary>(definition);
    if (vocabulary->size() != definition.model.vocab.size())
      throw TokenizerError("must have each token once. Got one twice");
    return vocabulary;
  } catch (const TokenizerError& error) {
    throw error.in_file(files_.path(name));
  }
}

void PythonBuilder::add_first(uint32_t id, const GivenToken& token) {
  first_.insert_or_assign(id, token.added());
}

void PythonBuilder::finish(std::unique_ptr<const PythonClass> python_class) {
  parts_.python_class = std::move(python_class);
  read_sides();
  read_special_tokens();
  read_settings();
  for (const auto& [id, token] : arguments.added()) {
    if (id < 0 || id > UINT32_MAX)
      refuse("added_tokens_decoder", "have ids from 0 to 2^32 - 1", std::to_string(id));
    first_.insert_or_assign(static_cast<uint32_t>(id), token.added());
  }
  for (const auto& [id, token] : first_) {
    if (const uint32_t* const other = parts_.added.id(token.content)) {
      refuse(
          "added tokens", "have one id each",
          shown(token.content) + " with " + std::to_string(*other) + " and " + std::to_string(id));
    }
    parts_.added.add(id, token);
  }
  add_special_tokens();
  const auto note = [&](const GivenToken& token) {
    parts_.added.add_special(token.content);
    const uint32_t* const added = parts_.added.id(token.content);
    const auto found =
        added != nullptr ? std::optional(*added) : parts_.python_class->convert(token.content);
    if (found) parts_.special_ids.push_back(*found);
  };
  for (const auto& [name, token] : special_tokens_) note(token);
  for (const GivenToken& token : extra_) note(token);
}

// Those that are not added yet, with the ids that the vocabulary has for them, or those after it.
void PythonBuilder::add_special_tokens() {
  using Kind = PythonClass::VocabularyKind;
  const PythonClass& own = *parts_.python_class;
  const Kind kind = own.vocabulary_kind();
  // Where the vocabulary is asked for the token of each id, an added token hides the one that had
  // its id.
  std::unordered_set<std::string> hidden;
  if (kind != Kind::Dictionary) {
    for (const auto& [id, token] : parts_.added.tokens()) {
      const std::optional<std::string> old = id < own.id_limit() ? own.token(id) : std::nullopt;
      if (old && *old != token.content) hidden.insert(*old);
    }
  }
  std::size_t next = own.size() - hidden.size();
  for (const auto& [id, token] : parts_.added.tokens()) {
    if (!own.find(token.content) || hidden.contains(token.content)) ++next;
  }
  const auto known_id = [&](const std::string& text) -> std::optional<uint32_t> {
    const bool is_hidden = kind == Kind::ListedIds && hidden.contains(text);
    return is_hidden ? std::nullopt : own.find(text);
  };
  std::vector<std::pair<uint32_t, AddedToken>> made;
  std::unordered_set<std::string> seen;
  const auto add = [&](const std::string& text) {
    if (text.empty() || parts_.added.id(text) || !seen.insert(text).second) return;
    GivenToken token(text);
    token.special = true;
    token.normalized = false;
    const std::optional<uint32_t> known = known_id(text);
    made.emplace_back(known ? *known : static_cast<uint32_t>(next++), token.added());
  };
  for (const auto& [name, token] : special_tokens_) add(token.content);
  for (const GivenToken& token : extra_) add(token.content);
  for (const auto& [id, token] : made) parts_.added.add(id, token);
  parts_.added.update_cuts();
  if (kind != Kind::Sentencepiece) return;
  for (const auto& [name, token] : special_tokens_) parts_.added.add_cut(token.content);
  for (const GivenToken& token : extra_) parts_.added.add_cut(token.content);
}

void PythonBuilder::add_known(const AddedToken& token) {
  std::optional<uint32_t> id = parts_.python_class->find(token.content);
  if (const uint32_t* const added = parts_.added.id(token.content)) {
    const AddedToken* const there = parts_.added.find(*added);
    if (there != nullptr && there->content == token.content) id = *added;
  }
  if (!id) return;
  parts_.added.add(*id, token);
  parts_.added.add_cut(token.content);
}

uint32_t PythonBuilder::id(const std::string& token) const {
  if (const uint32_t* const added = parts_.added.id(token)) return *added;
  const std::optional<uint32_t> found = parts_.python_class->convert(token);
  if (!found) {
    refuse("the vocabulary", "have the tokens of " + settings.tokenizer_class,
           "none for " + shown(token));
  }
  return *found;
}

PythonTemplate::Items PythonBuilder::items_of(std::string_view pieces) const {
  PythonTemplate::Items items;
  for (const std::string_view piece : python::split(pieces)) {
    PythonTemplate::Item item;
    if (piece == "A" || piece == "B") {
      item.text = piece == "B" ? 1 : 0;
    } else {
      const std::string text = named_text(std::string(piece).c_str());
      item.token = {id(text), text};
    }
    items.push_back(std::move(item));
  }
  return items;
}

PythonTemplate PythonBuilder::around(std::string_view single, std::string_view pair) const {
  PythonTemplate made;
  made.single = items_of(single);
  made.pair = items_of(pair);
  return made;
}

FolderTokenizer PythonBuilder::result() && {
  write_special_tokens();
  parts_.added.finish();
  return {{}, std::move(parts_), std::move(settings)};
}

}  // namespace posenc::text
