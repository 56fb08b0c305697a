#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/models/model.h"
#include "tokenizers/python/added_tokens.h"
#include "tokenizers/python/tokens.h"

namespace posenc::text {

/// What a class of transformers that is written in Python (a "slow" tokenizer) has of its own:
/// its vocabulary, and how it cuts a text and joins tokens. Immutable.
class PythonClass {
 public:
  virtual ~PythonClass() = default;

  /// Memory for calls of tokenize(), one for each thread.
  virtual std::unique_ptr<Scratch> scratch() const { return std::make_unique<Scratch>(); }
  /// Changes a text before added tokens are cut out of it.
  virtual void prepare(std::string&) const {}
  /// Adds the tokens of a text without added tokens: `_tokenize()`. Throws TokenizerError where
  /// the class does.
  virtual void tokenize(std::string_view text, Scratch& scratch, PythonTokens& tokens) const = 0;
  /// Changes the tokens of the whole text.
  virtual void finish(PythonTokens&, const PythonAddedTokens&) const {}

  /// The id of a token of the vocabulary.
  virtual std::optional<uint32_t> find(std::string_view token) const = 0;
  /// What `_convert_token_to_id()` returns for one that is not there; nothing if the class fails.
  virtual std::optional<uint32_t> unknown_id() const = 0;
  /// What `_convert_token_to_id()` returns.
  virtual std::optional<uint32_t> convert(std::string_view token) const {
    const std::optional<uint32_t> known = find(token);
    return known ? known : unknown_id();
  }
  /// The token of an id: `_convert_id_to_token()`; nothing if the class fails.
  virtual std::optional<std::string> token(uint32_t id) const = 0;
  /// Number of different tokens of the vocabulary.
  virtual std::size_t size() const = 0;
  /// The ids that get_vocab() asks for tokens lie below this.
  virtual std::size_t id_limit() const { return size(); }
  /// How get_vocab() and _add_tokens() look for tokens.
  enum class VocabularyKind {
    Dictionary,     ///< in a dictionary of tokens
    ListedIds,      ///< by the token of each id from 0 to the size
    Sentencepiece,  ///< the same, but for ids in the SentencePiece model
  };
  virtual VocabularyKind vocabulary_kind() const { return VocabularyKind::Dictionary; }

  /// Whether an id stands for the vocabulary's token even where an added token has it.
  virtual bool precedes_added() const { return false; }
  /// Of such a class: whether the vocabulary has a token for an id.
  virtual bool knows(uint32_t) const { return false; }
  /// Whether decode() skips tokens that are spelled as special ones, and not their ids; of these it
  /// keeps the one that is returned.
  virtual std::optional<std::string> kept_where_skipped_by_text() const { return std::nullopt; }

  /// The text of tokens: `convert_tokens_to_string()`.
  virtual std::string join(const std::vector<std::string>& tokens,
                           const PythonAddedTokens& added) const;
};

}  // namespace posenc::text
