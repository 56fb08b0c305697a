// posenc-tokenize-cases: a tokenizer for tests/text/*_test.py. Each line of its input is a JSON
// object, and so is each line of its output:
//   {"load": the text of a tokenizer.json}                     {}
//   {"folder": path}                        {"definition": ..., "settings": ...}: see folder_json()
//   {"encode": text, "pair": text or null, "special": bool, "truncation": null or {...},
//   "ids_only": bool, "tokens": bool}
//       {"rows": [{"ids", "type_ids", "special_tokens_mask", "offsets", "tokens"}, ...]}
//   {"decode": [id, ...], "skip": bool}                        {"text": text}
//   {"stream": [id, ...], "skip": bool}     {"steps": [text or null, ...], "end": the rest}, or the
//   error of the last
//   {"token_to_id": text}, {"id_to_token": id}                 {"id": id or null}, {"token": text
//   or null}
//   {"pieces": path of a SentencePiece model}                  {}
//   {"cut": text}                           {"ids": [...], "pieces": [...]}
//   {"join": [piece, ...]}                  {"text": text}
// An error is {"error": text}.
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/folder/files.h"
#include "tokenizers/folder/folder.h"
#include "tokenizers/loaded_tokenizer.h"
#include "tokenizers/pipeline/stream_state.h"
#include "tokenizers/pipeline/tokenizer_pipeline.h"
#include "tokenizers/sentencepiece/processor.h"

namespace {

using nlohmann::json;
using namespace posenc::text;

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

// What a folder says, in the words of tokenizer.json and of transformers' attributes.
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

TruncationRule truncation_of(const json& given) {
  TruncationRule rule;
  rule.max_length = given["max_length"].get<std::size_t>();
  rule.stride = given["stride"].get<std::size_t>();
  rule.from_left = given["direction"] == "left";
  const std::string strategy = given["strategy"];
  rule.strategy = strategy == "longest_first" ? TruncationRule::Strategy::LongestFirst
                  : strategy == "only_first"  ? TruncationRule::Strategy::OnlyFirst
                                              : TruncationRule::Strategy::OnlySecond;
  return rule;
}

json rows_of(const EncodedRows& rows) {
  json all = json::array();
  for (std::size_t row = 0; row < rows.ends.size(); ++row) {
    json one = {{"ids", json::array()},
                {"type_ids", json::array()},
                {"special_tokens_mask", json::array()}};
    if (!rows.offsets.empty()) one["offsets"] = json::array();
    if (!rows.tokens.empty()) one["tokens"] = json::array();
    for (std::size_t i = rows.begin(row); i < rows.ends[row]; ++i) {
      one["ids"].push_back(rows.ids[i]);
      one["type_ids"].push_back(rows.type_ids[i]);
      one["special_tokens_mask"].push_back(rows.special_tokens_mask[i]);
      if (!rows.offsets.empty())
        one["offsets"].push_back({rows.offsets[i].begin, rows.offsets[i].end});
      if (!rows.tokens.empty()) one["tokens"].push_back(rows.tokens[i]);
    }
    all.push_back(std::move(one));
  }
  return all;
}

json encode(const TextPipeline& pipeline, const json& given) {
  EncodeRequest request;
  request.add_special_tokens = given.value("special", true);
  request.overflow = pipeline.has_offsets();
  request.target = given.value("target", false);
  const bool ids_only = given.value("ids_only", false);
  request.requested = {!ids_only && pipeline.has_offsets(),
                       !ids_only && given.value("tokens", true)};
  if (given.contains("truncation") && !given["truncation"].is_null()) {
    request.truncation = truncation_of(given["truncation"]);
  }
  std::optional<std::string> pair;
  if (given.contains("pair") && !given["pair"].is_null()) pair = given["pair"].get<std::string>();
  EncodedRows rows;
  pipeline.encode(given["encode"].get<std::string>(), pair, request, 0, rows);
  return {{"rows", rows_of(rows)}};
}

json stream(const TextPipeline& pipeline, const json& given) {
  const bool skip = given["skip"].get<bool>();
  StreamState state({std::shared_ptr<void>(), &pipeline}, skip);
  json steps = json::array();
  for (const uint32_t id : given["stream"]) {
    try {
      const auto text = state.step(id);
      steps.push_back(text ? json(*text) : json());
    } catch (const posenc::Error& error) {
      return {{"steps", steps}, {"error", error.what()}};
    }
  }
  return {{"steps", steps}, {"end", state.end()}};
}

json cut(const SentencePieceProcessor& pieces, const std::string& text) {
  SentencePieceProcessor::Scratch scratch;
  json ids = json::array(), texts = json::array();
  pieces.encode(text, scratch, [&](std::string_view piece, int32_t id) {
    texts.push_back(std::string(piece));
    ids.push_back(id);
  });
  return {{"ids", ids}, {"pieces", texts}};
}

// The tokenizer that questions are about: of a file or of a folder.
struct Loaded {
  std::unique_ptr<TokenizerPipeline> file;
  std::unique_ptr<SentencePieceProcessor> pieces;
  std::shared_ptr<const LoadedTokenizer> folder;
};

json answer(Loaded& loaded, const json& given) {
  if (given.contains("load")) {
    loaded = {};
    loaded.file =
        std::make_unique<TokenizerPipeline>(read_definition(given["load"].get<std::string>()));
    return json::object();
  }
  if (given.contains("folder")) {
    loaded = {};
    const std::string path = given["folder"].get<std::string>();
    json facts = folder_json(read_folder(FolderFiles(path)));
    loaded.folder = LoadedTokenizer::from_folder(path, {});
    return facts;
  }
  if (given.contains("pieces")) {
    loaded = {};
    loaded.pieces = std::make_unique<SentencePieceProcessor>(
        read_sentencepiece_proto(read_file(given["pieces"])));
    return json::object();
  }
  if (given.contains("cut")) return cut(*loaded.pieces, given["cut"].get<std::string>());
  if (given.contains("join")) {
    return {{"text", loaded.pieces->decode(given["join"].get<std::vector<std::string>>())}};
  }
  const TextPipeline* const pipeline = loaded.file ? loaded.file.get() : &loaded.folder->pipeline();
  if (given.contains("encode")) return encode(*pipeline, given);
  if (given.contains("decode")) {
    const auto ids = given["decode"].get<std::vector<uint32_t>>();
    const bool skip = given["skip"].get<bool>();
    return {
        {"text", loaded.folder ? loaded.folder->decode(ids, skip) : pipeline->decode(ids, skip)}};
  }
  if (given.contains("stream")) return stream(*pipeline, given);
  if (given.contains("token_to_id")) {
    const auto id = pipeline->token_to_id(given["token_to_id"].get<std::string>());
    return {{"id", id ? json(*id) : json()}};
  }
  const auto token = pipeline->id_to_token(given["id_to_token"].get<uint32_t>());
  return {{"token", token ? json(*token) : json()}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  Loaded loaded;
  for (std::string line; std::getline(std::cin, line);) {
    json result;
    try {
      result = answer(loaded, json::parse(line));
    } catch (const posenc::Error& error) {
      result = {{"error", error.what()}};
    }
    std::cout << result.dump() << std::endl;
  }
}
