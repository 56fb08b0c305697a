#include "tokenizers/sentencepiece/pieces.h"

#include <array>
#include <cmath>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/sentencepiece/byte_pieces.h"

namespace posenc::text {
namespace {

[[noreturn]] void refuse_piece(const std::string& rule, std::string_view piece) {
  throw TokenizerError("a piece: must " + rule + ". Got " + io::in_quotes(std::string(piece)));
}

bool is_searched_type(SentencePiece::Type type) {
  return type == SentencePiece::Type::Normal || type == SentencePiece::Type::UserDefined ||
         type == SentencePiece::Type::Unused;
}

}  // namespace

PieceTable::PieceTable(const SentencePieceModel& model) {
  using Type = SentencePiece::Type;
  constexpr std::size_t kLongest = 8000;  // in bytes, as SentencePiece
  constexpr std::string_view kNull("\0", 1);
  const bool is_bpe = model.kind == SentencePieceModel::Kind::Bpe;
  Definition searched, reserved;
  std::array<bool, 256> has_byte{};
  for (const SentencePiece& piece : model.pieces) {
    const auto id = static_cast<int32_t>(texts_.size());
    const std::string_view text = strings_.strings->keep(piece.text);
    const bool is_null = text == kNull && (piece.type == Type::Unused || model.byte_fallback);
    texts_.push_back(text);
    types_.push_back(is_null ? Type::Unused : piece.type);
    scores_.push_back(piece.score);
    if (text.empty()) refuse_piece("not be empty", text);
    if (text.size() >= kLongest) refuse_piece("have less than 8000 bytes", text.substr(0, 40));
    if (!std::isfinite(piece.score)) refuse_piece("have a finite score", text);
    if (is_null) continue;
    if (text.find('\0') != std::string_view::npos) refuse_piece("have no NUL", text);
    // BPE looks for all of them, and refuses what it finds of those that are not for texts.
    const bool is_for_texts = is_bpe || is_searched_type(piece.type);
    (is_for_texts ? searched : reserved).model.vocab.push_back({text, static_cast<uint32_t>(id)});
    if (piece.type == Type::Unknown) {
      if (unknown_ != PieceMatch::kNoPiece) refuse_piece("be the only unknown one", text);
      unknown_ = id;
    }
    if (piece.type == Type::Byte) {
      const auto byte = byte_of_piece(text);
      if (!byte || !model.byte_fallback)
        refuse_piece("be <0x00> to <0xFF>, of a model with byte_fallback", text);
      has_byte[*byte] = true;
    }
  }
  if (model.byte_fallback) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (!has_byte[byte]) refuse_piece("be there for each byte", byte_pieces()[byte]);
    }
  } else if (unknown_ == PieceMatch::kNoPiece) {
    throw TokenizerError("the pieces: must have an unknown one. Got no unknown piece");
  }
  searched_.emplace(searched);
  reserved_.emplace(reserved);
  for (const auto* list : {&searched, &reserved}) {
    const auto& vocabulary = list == &searched ? *searched_ : *reserved_;
    if (vocabulary.size() == list->model.vocab.size()) continue;
    throw TokenizerError("the pieces: must have each text once. Got one twice");
  }
}

int32_t PieceTable::searched_id(std::string_view piece) const {
  const auto id = searched_->id(piece);
  return id ? static_cast<int32_t>(*id) : unknown_;
}

int32_t PieceTable::id(std::string_view piece) const {
  const auto id = reserved_->id(piece);
  return id ? static_cast<int32_t>(*id) : searched_id(piece);
}

bool PieceTable::is_searched(int32_t id) const {
  return id != PieceMatch::kNoPiece && is_searched_type(type(id));
}

}  // namespace posenc::text
