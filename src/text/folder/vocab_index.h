#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/definition.h"

namespace posenc::text {

/// Finds pieces of a vocabulary by their text: a table with open addressing, made in one pass.
class VocabIndex {
 public:
  explicit VocabIndex(std::size_t pieces);

  /// Adds the piece at `place` of `vocab`, or returns the place of the one that has its text.
  std::optional<uint32_t> insert(const std::vector<Piece>& vocab, uint32_t place);
  /// The place of a text; nothing if it is not there.
  std::optional<uint32_t> find(const std::vector<Piece>& vocab, std::string_view text) const;

 private:
  std::size_t slot(const std::vector<Piece>& vocab, std::string_view text) const;

  std::vector<uint32_t> places_;  // one more than the place; 0 for none
};

}  // namespace posenc::text
