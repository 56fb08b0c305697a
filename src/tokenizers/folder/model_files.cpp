#include "tokenizers/folder/model_files.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/folder/folder_model.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

using Kind = ModelDefinition::Kind;

// Calls `line` with each, without "\n" or "\r\n".
void for_each_line(std::string_view text, const std::function<void(std::string_view)>& line) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view found = text.substr(0, end);
    if (end < text.size() && found.ends_with('\r')) found.remove_suffix(1);
    line(found);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string_view without_white_space_at_end(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < line.size();) {
    if (!unicode::is_white_space(next_character(line, at))) end = at;
  }
  return line.substr(0, end);
}

void read_vocab_txt(std::string_view text, Definition& definition) {
  std::vector<Piece>& vocab = definition.model.vocab;
  for_each_line(text, [&](std::string_view line) {
    vocab.push_back({definition.strings->keep(without_white_space_at_end(line)),
                     static_cast<uint32_t>(vocab.size())});
  });
}

void read_merges_txt(std::string_view text, Definition& definition) {
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with("#version")) return;
    definition.model.merges.push_back(split_merge(definition.merge_strings->keep(line)));
  });
}

// Reads a file of the folder, which must be UTF-8.
void read_text_file(const FolderFiles& files, const char* name,
                    const std::function<void(std::string_view)>& read) {
  const std::string text = files.read(name);
  try {
    if (!io::is_utf8(text)) throw TokenizerError("must be UTF-8. Got other bytes");
    read(text);
  } catch (const TokenizerError& error) {
    throw error.in_file(files.path(name));
  }
}

}  // namespace

ModelDefinition vocabulary_of(ModelDefinition model, Kind kind) {
  const bool is_list = model.kind == Kind::Unigram;
  ModelDefinition made;
  made.kind = kind;
  made.vocab = std::move(model.vocab);
  if (kind == Kind::Unigram) {
    if (!is_list) refuse("model", "be Unigram for this class", "a model without scores");
    made.scores = made.exact_scores = std::move(model.exact_scores);
    return made;
  }
  if (model.kind == Kind::Bpe && kind == Kind::Bpe) made.merges = std::move(model.merges);
  return made;
}

// transformers looks for some names whatever the class.
std::string vocabulary_file(const ClassBuilder& builder, const VocabularyFiles& of_class) {
  const FolderFiles& files = builder.files();
  for (const char* other : {"tekken.json", "tiktoken.model"}) {
    if (files.has(other))
      refuse("its files", "include tokenizer.json",
             std::string(other) + ", which is not supported");
  }
  if (files.has("tokenizer.model")) return "tokenizer.model";
  if (of_class.vocab && files.has(of_class.vocab)) return of_class.vocab;
  std::string required = "include tokenizer.json";
  if (of_class.vocab) required += std::string(" or ") + of_class.vocab;
  refuse("its files", required, "neither, for class " + builder.settings.tokenizer_class,
         TokenizerErrorCode::File);
}

void read_model_files(ClassBuilder& builder, Kind kind, const VocabularyFiles& of_class) {
  const FolderFiles& files = builder.files();
  const std::string name = vocabulary_file(builder, of_class);
  Definition& definition = builder.definition;
  definition.model.kind = kind;
  if (name.ends_with(".model")) return read_sentencepiece_model(builder, kind, name);
  if (kind == Kind::WordPiece) {
    return read_text_file(files, name.c_str(),
                          [&](std::string_view text) { read_vocab_txt(text, definition); });
  }
  read_text_file(files, name.c_str(),
                 [&](std::string_view text) { read_vocabulary(text, definition); });
  if (!of_class.merges || !files.has(of_class.merges)) {
    refuse("its files",
           std::string("include ") + (of_class.merges ? of_class.merges : "tokenizer.json"), "none",
           TokenizerErrorCode::File);
  }
  read_text_file(files, of_class.merges,
                 [&](std::string_view text) { read_merges_txt(text, definition); });
}

}  // namespace posenc::text
