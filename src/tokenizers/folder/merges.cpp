#include "tokenizers/folder/merges.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "tokenizers/folder/files.h"
#include "tokenizers/models/vocabulary.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

void make_merges(Definition& definition) {
  constexpr std::size_t kLongest = 1000;  // in bytes, as the work goes by the square
  const Vocabulary vocabulary(definition);
  std::vector<Piece> pieces = definition.model.vocab;
  std::ranges::stable_sort(pieces, {}, &Piece::id);
  for (const Piece& piece : pieces) {
    if (piece.text.size() > kLongest)
      refuse("a piece", "have at most 1000 bytes", std::to_string(piece.text.size()));
    for (std::size_t at = 0; at < piece.text.size();) {
      next_character(piece.text, at);
      if (at == piece.text.size()) break;
      const std::string_view left = piece.text.substr(0, at), right = piece.text.substr(at);
      if (vocabulary.id(left) && vocabulary.id(right))
        definition.model.merges.push_back({left, right});
    }
  }
}

}  // namespace posenc::text
