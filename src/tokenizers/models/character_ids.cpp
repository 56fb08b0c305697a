#include "tokenizers/models/character_ids.h"

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

CharacterIds::CharacterIds(const Vocabulary& vocabulary) : ids_(kPage, -1) {
  for (const Piece& piece : vocabulary.pieces()) {
    if (piece.text.empty() ||
        utf8_length(static_cast<unsigned char>(piece.text[0])) != piece.text.size())
      continue;
    std::size_t at = 0;
    const char32_t c = next_character(piece.text, at);
    uint32_t& page = pages_[c / kPage];
    if (page == 0) {
      page = static_cast<uint32_t>(ids_.size());
      ids_.resize(ids_.size() + kPage, -1);
    }
    ids_[page + c % kPage] = piece.id;
  }
}

}  // namespace posenc::text
