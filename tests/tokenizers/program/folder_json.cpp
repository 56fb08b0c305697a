#include "folder_json.h"

#include <string>

using nlohmann::json;
using namespace posenc::text;

namespace {

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json model_json(const ModelDefinition& model) {
  using Kind = ModelDefinition::Kind;
  const char* const kinds[] = {"BPE", "WordPiece", "WordLevel", "Unigram"};
  json made = {{"type", kinds[static_cast<int>(model.kind)]}};
  if (model.kind == Kind::Unigram) {
    json vocab = json::array();
    for (std::size_t i = 0; i < model.vocab.size(); ++i)
      vocab.push_back({model.vocab[i].text, model.scores[i]});
    made["vocab"] = std::move(vocab);
    made["unk_id"] = or_null(model.unk_id);
  } else {
    json vocab = json::object();
    for (const Piece& piece : model.vocab) vocab[std::string(piece.text)] = piece.id;
    made["vocab"] = std::move(vocab);
    made["unk_token"] = or_null(model.unk_token);
  }
  made["byte_fallback"] = model.byte_fallback;
  if (model.kind == Kind::Bpe) {
    json merges = json::array();
    for (const Merge& merge : model.merges) merges.push_back({merge.left, merge.right});
    made["merges"] = std::move(merges);
    made["fuse_unk"] = model.fuse_unk;
    made["ignore_merges"] = model.ignore_merges;
    made["continuing_subword_prefix"] = model.continuing_subword_prefix;
    made["end_of_word_suffix"] = model.end_of_word_suffix;
  }
  if (model.kind == Kind::WordPiece) {
    made["continuing_subword_prefix"] = model.continuing_subword_prefix;
    made["max_input_chars_per_word"] = model.max_input_chars_per_word;
  }
  return made;
}

json added_json(const AddedToken& token) {
  return {{"content", token.content},       {"single_word", token.single_word},
          {"lstrip", token.lstrip},         {"rstrip", token.rstrip},
          {"normalized", token.normalized}, {"special", token.special}};
}

json definition_json(const Definition& definition) {
  json added = json::array();
  for (const AddedToken& token : definition.added_tokens) added.push_back(added_json(token));
  return {
      {"normalizer", definition.normalizer},         {"pre_tokenizer", definition.pre_tokenizer},
      {"post_processor", definition.post_processor}, {"decoder", definition.decoder},
      {"model", model_json(definition.model)},       {"added_tokens", std::move(added)}};
}

// The added tokens of a class in Python, by their id.
json python_json(const PythonParts& parts) {
  json added = json::object();
  for (const auto& [id, token] : parts.added.tokens())
    added[std::to_string(id)] = added_json(token);
  return {{"added", std::move(added)}};
}

}  // namespace

json folder_json(const FolderTokenizer& folder) {
  const FolderSettings& settings = folder.settings;
  json made = {{"settings",
                {{"class", settings.tokenizer_class},
                 {"padding_side", settings.pads_left ? "left" : "right"},
                 {"truncation_side", settings.truncates_left ? "left" : "right"},
                 {"model_max_length", or_null(settings.model_max_length)},
                 {"special_tokens", settings.special_tokens},
                 {"extra_special_tokens", settings.extra_special_tokens},
                 {"model_input_names", settings.model_input_names},
                 {"clean_up_tokenization_spaces", settings.clean_up_tokenization_spaces},
                 {"split_special_tokens", settings.split_special_tokens}}}};
  if (folder.python) {
    made["python"] = python_json(*folder.python);
  } else {
    made["definition"] = definition_json(folder.definition);
  }
  return made;
}
