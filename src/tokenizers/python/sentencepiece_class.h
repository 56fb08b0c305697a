#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/python/python_class.h"
#include "tokenizers/sentencepiece/processor.h"

namespace posenc::text {

/// A class whose texts are cut by SentencePiece, with the vocabulary of the model.
class SentencePieceClass : public PythonClass {
 public:
  explicit SentencePieceClass(std::shared_ptr<const SentencePieceProcessor> pieces)
      : pieces_(std::move(pieces)) {}

  std::unique_ptr<Scratch> scratch() const override;
  void tokenize(std::string_view text, Scratch& scratch, PythonTokens& tokens) const override;
  std::optional<uint32_t> find(std::string_view token) const override;
  std::optional<uint32_t> unknown_id() const override;
  std::optional<std::string> token(uint32_t id) const override;
  std::size_t size() const override { return pieces_->size(); }
  VocabularyKind vocabulary_kind() const override { return VocabularyKind::Sentencepiece; }
  /// Joins the tokens, of which U+2581 is a blank.
  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override;

 protected:
  /// The pieces of a text, whose ids are those of the model.
  void cut(std::string_view text, Scratch& scratch, PythonTokens& tokens) const;
  const SentencePieceProcessor& pieces() const { return *pieces_; }

 private:
  std::shared_ptr<const SentencePieceProcessor> pieces_;
};

/// The same with the vocabulary of another file, in which unknown pieces are looked up too.
class TranslatedPieces : public PythonClass {
 public:
  /// `unknown` is the id of a piece that the vocabulary lacks.
  TranslatedPieces(std::shared_ptr<const SentencePieceProcessor> pieces,
                   std::shared_ptr<const Vocabulary> vocabulary, std::optional<uint32_t> unknown);

  std::unique_ptr<Scratch> scratch() const override;
  void tokenize(std::string_view text, Scratch& scratch, PythonTokens& tokens) const override;
  std::optional<uint32_t> find(std::string_view token) const override {
    return vocabulary_->id(token);
  }
  std::optional<uint32_t> unknown_id() const override { return unknown_; }
  std::size_t size() const override { return vocabulary_->size(); }

 protected:
  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  std::shared_ptr<const SentencePieceProcessor> pieces_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::optional<uint32_t> unknown_;
  std::vector<std::optional<uint32_t>> ids_;  // of each piece
};

/// The text of tokens between which special ones are left as they are, each with `after` after it.
std::string join_around_specials(const SentencePieceProcessor& pieces,
                                 const std::vector<std::string>& tokens,
                                 const PythonAddedTokens& added, std::string_view after);

}  // namespace posenc::text
