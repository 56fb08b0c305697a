#include "tokenizers/python/sentencepiece_class.h"

#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/python/text.h"

namespace posenc::text {
namespace {

struct ProcessorScratch : Scratch {
  SentencePieceProcessor::Scratch memory;
};

SentencePieceProcessor::Scratch& memory_of(Scratch& scratch) {
  return static_cast<ProcessorScratch&>(scratch).memory;
}

}  // namespace

std::unique_ptr<Scratch> SentencePieceClass::scratch() const {
  return std::make_unique<ProcessorScratch>();
}

void SentencePieceClass::cut(std::string_view text, Scratch& scratch, PythonTokens& tokens) const {
  pieces_->encode(text, memory_of(scratch), [&](std::string_view piece, int32_t id) {
    if (pieces_->table().is_unknown(id)) {
      tokens.add(piece);  // it may be a piece that texts are not cut into
    } else {
      tokens.add(piece, static_cast<uint32_t>(id));
    }
  });
}

void SentencePieceClass::tokenize(std::string_view text, Scratch& scratch,
                                  PythonTokens& tokens) const {
  cut(text, scratch, tokens);
}

std::optional<uint32_t> SentencePieceClass::find(std::string_view token) const {
  const int32_t id = pieces_->id(token);
  if (id == PieceMatch::kNoPiece || pieces_->table().text(id) != token) return std::nullopt;
  return static_cast<uint32_t>(id);
}

std::optional<uint32_t> SentencePieceClass::unknown_id() const {
  const int32_t id = pieces_->table().unknown();
  if (id == PieceMatch::kNoPiece) return std::nullopt;
  return static_cast<uint32_t>(id);
}

std::optional<std::string> SentencePieceClass::token(uint32_t id) const {
  if (id >= pieces_->size()) return std::nullopt;
  return std::string(pieces_->piece(id));
}

std::string SentencePieceClass::join(const std::vector<std::string>& tokens,
                                     const PythonAddedTokens&) const {
  std::string text;
  for (const std::string& token : tokens) text += token;
  replace_all(text, "\u2581", " ");
  return std::string(python::stripped(text));
}

TranslatedPieces::TranslatedPieces(std::shared_ptr<const SentencePieceProcessor> pieces,
                                   std::shared_ptr<const Vocabulary> vocabulary,
                                   std::optional<uint32_t> unknown)
    : pieces_(std::move(pieces)), vocabulary_(std::move(vocabulary)), unknown_(unknown) {
  ids_.reserve(pieces_->size());
  for (std::size_t i = 0; i < pieces_->size(); ++i) {
    const auto id = vocabulary_->id(pieces_->piece(static_cast<uint32_t>(i)));
    ids_.push_back(id ? id : unknown_);
  }
}

std::unique_ptr<Scratch> TranslatedPieces::scratch() const {
  return std::make_unique<ProcessorScratch>();
}

void TranslatedPieces::tokenize(std::string_view text, Scratch& scratch,
                                PythonTokens& tokens) const {
  pieces_->encode(text, memory_of(scratch), [&](std::string_view piece, int32_t id) {
    if (pieces_->table().is_unknown(id)) {
      tokens.add(piece);
    } else {
      tokens.add(piece, ids_[static_cast<std::size_t>(id)]);
    }
  });
}

std::string join_around_specials(const SentencePieceProcessor& pieces,
                                 const std::vector<std::string>& tokens,
                                 const PythonAddedTokens& added, std::string_view after) {
  std::string text;
  std::vector<std::string> part;
  for (const std::string& token : tokens) {
    if (added.is_special(token)) {
      text += pieces.decode(part);
      text += token;
      text += after;
      part.clear();
    } else {
      part.push_back(token);
    }
  }
  return text += pieces.decode(part);
}

}  // namespace posenc::text
