#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/folder/base_constructor.h"
#include "tokenizers/python/python_parts.h"
#include "tokenizers/sentencepiece/processor.h"

namespace posenc::text {

/// Makes a tokenizer as the constructor of a class of transformers that is written in Python does:
/// the class names its tokens and makes its PythonClass, then calls finish() where Python calls
/// PythonBackend's constructor, and then says what is around its texts.
class PythonBuilder : public BaseConstructor {
 public:
  /// `file_tokens` are the added tokens of tokenizer.json, if there is one.
  PythonBuilder(const FolderFiles& files, Settings tokenizer_config,
                const std::vector<AddedToken>* file_tokens, std::string tokenizer_class);

  const FolderFiles& files() const { return files_; }
  /// Throws TokenizerError unless the folder has the file.
  void require_file(const char* name) const;
  /// The SentencePiece model in a file, with SentencePiece's own settings only. Throws
  /// TokenizerError.
  std::shared_ptr<const SentencePieceProcessor> sentencepiece(const char* name) const;
  /// The same as SentencePieceBackend of transformers loads it. Throws TokenizerError.
  std::shared_ptr<const SentencePieceProcessor> sentencepiece_backend(const char* name) const;
  /// The text of a file, with "\n" for each end of a line. Throws TokenizerError unless it is
  /// UTF-8.
  std::string text_file(const char* name) const;
  /// The tokens and ids in a JSON file. Throws TokenizerError.
  std::shared_ptr<const Vocabulary> json_vocabulary(const char* name) const;

  /// Tokens that the class adds before those of the folder, by their id.
  void add_first(uint32_t id, const GivenToken& token);
  /// What PythonBackend's constructor does: settings, special tokens, added tokens.
  void finish(std::unique_ptr<const PythonClass> python_class);
  void set_target(std::unique_ptr<const PythonClass> target_class) {
    parts_.target_class = std::move(target_class);
  }

  /// Adds tokens of the vocabulary after finish(), as add_tokens() does.
  void add_known(const AddedToken& token);
  /// The id of a token after finish(), the unknown one's where there is none. Throws TokenizerError
  /// if that is missing too.
  uint32_t id(const std::string& token) const;
  /// That of a named token. Throws TokenizerError for none.
  uint32_t named_id(const char* name) const { return id(named_text(name)); }

  /// What is around texts, as pieces between blanks: "A", "B", or a named token such as
  /// "eos_token".
  PythonTemplate around(std::string_view single, std::string_view pair) const;
  void set_around(PythonTemplate around) { parts_.around = std::move(around); }
  void set_target_around(PythonTemplate around) { parts_.around_target = std::move(around); }
  /// Texts of the target language are refused where there is no template for them.
  void require_target_language() { parts_.needs_target_language = true; }
  PythonAddedTokens& added() { return parts_.added; }

  /// The tokenizer that was made.
  FolderTokenizer result() &&;

 private:
  std::shared_ptr<const SentencePieceProcessor> load_pieces(const char* name,
                                                            bool adds_prefix) const;
  PythonTemplate::Items items_of(std::string_view pieces) const;
  void add_special_tokens();

  std::map<uint32_t, AddedToken> first_;  // before the special tokens
  const FolderFiles& files_;
  PythonParts parts_;
};

}  // namespace posenc::text
