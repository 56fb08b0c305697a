#include "text/folder/vocab_index.h"

#include <bit>
#include <functional>

namespace posenc::text {

VocabIndex::VocabIndex(std::size_t pieces) : places_(std::bit_ceil(2 * pieces + 1), 0) {}

std::size_t VocabIndex::slot(const std::vector<Piece>& vocab, std::string_view text) const {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = std::hash<std::string_view>()(text) & mask;
  while (places_[at] != 0 && vocab[places_[at] - 1].text != text) at = (at + 1) & mask;
  return at;
}

std::optional<uint32_t> VocabIndex::insert(const std::vector<Piece>& vocab, uint32_t place) {
  uint32_t& found = places_[slot(vocab, vocab[place].text)];
  if (found != 0) return found - 1;
  found = place + 1;
  return std::nullopt;
}

std::optional<uint32_t> VocabIndex::find(const std::vector<Piece>& vocab, std::string_view text) const {
  const uint32_t found = places_[slot(vocab, text)];
  return found == 0 ? std::nullopt : std::optional(found - 1);
}

}  // namespace posenc::text
