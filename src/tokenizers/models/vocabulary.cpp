#include "tokenizers/models/vocabulary.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/text.h"
#include "posenc/tokenizers/error.h"

namespace posenc::text {
namespace {

uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

Vocabulary::Vocabulary(const Definition& definition)
    : strings_(definition.strings),
      pieces_(definition.model.vocab),
      slots_(std::bit_ceil(2 * pieces_.size() + 1)) {
  std::vector<bool> is_repeated;  // by a later piece; empty if there is none
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const uint64_t hash = hash_(pieces_[i].text);
    Slot& taken = slot(pieces_[i].text, hash);
    if (taken.index == 0) {
      ++size_;
    } else {
      is_repeated.resize(pieces_.size());
      is_repeated[taken.index - 1] = true;
    }
    taken = {tag_of(hash), static_cast<uint32_t>(i + 1)};
  }
  // In a Unigram vocabulary the place in the list is the id, also of a piece that a later one
  // repeats.
  if (definition.model.kind == ModelDefinition::Kind::Unigram) {
    size_ = pieces_.size();
    is_repeated.clear();
  }
  index_ids(is_repeated);
}

Vocabulary::Slot& Vocabulary::slot(std::string_view token, uint64_t hash) {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.index == 0 || (slot.tag == tag_of(hash) && pieces_[slot.index - 1].text == token))
      return slot;
  }
}

const Piece* Vocabulary::find(std::string_view token) const {
  const uint64_t hash = hash_(token);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot slot = slots_[at];
    if (slot.index == 0) return nullptr;
    if (slot.tag == tag_of(hash) && pieces_[slot.index - 1].text == token)
      return &pieces_[slot.index - 1];
  }
}

void Vocabulary::index_ids(const std::vector<bool>& is_left_out) {
  by_id_.assign(2 * pieces_.size(), 0);
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (!is_left_out.empty() && is_left_out[i]) continue;
    if (piece.id >= by_id_.size()) {
      far_.push_back(i);
      continue;
    }
    uint32_t& index = by_id_[piece.id];
    if (index != 0) {
      throw TokenizerError("model.vocab: must have each id once. Got " + std::to_string(piece.id) +
                           " for " + io::in_quotes(pieces_[index - 1].text) + " and " +
                           io::in_quotes(piece.text));
    }
    index = i + 1;
  }
  std::sort(far_.begin(), far_.end(),
            [&](uint32_t a, uint32_t b) { return pieces_[a].id < pieces_[b].id; });
  const auto same = std::adjacent_find(far_.begin(), far_.end(), [&](uint32_t a, uint32_t b) {
    return pieces_[a].id == pieces_[b].id;
  });
  if (same != far_.end()) {
    throw TokenizerError(
        "model.vocab: must have each id once. Got " + std::to_string(pieces_[*same].id) + " for " +
        io::in_quotes(pieces_[*same].text) + " and " + io::in_quotes(pieces_[same[1]].text));
  }
}

std::optional<std::string_view> Vocabulary::token(uint32_t id) const {
  if (id < by_id_.size()) {
    const uint32_t index = by_id_[id];
    return index == 0 ? std::nullopt : std::optional(pieces_[index - 1].text);
  }
  const auto found = std::lower_bound(far_.begin(), far_.end(), id,
                                      [&](uint32_t a, uint32_t b) { return pieces_[a].id < b; });
  if (found == far_.end() || pieces_[*found].id != id) return std::nullopt;
  return pieces_[*found].text;
}

}  // namespace posenc::text
