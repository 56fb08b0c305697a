#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tokenizers/models/vocabulary.h"

namespace posenc::text {

/// The ids of the tokens that are one character, in pages of 256 of those blocks that have any.
class CharacterIds {
 public:
  explicit CharacterIds(const Vocabulary& vocabulary);

  /// The id, or -1.
  int64_t id(char32_t c) const { return ids_[pages_[c / kPage] + c % kPage]; }

 private:
  static constexpr uint32_t kPage = 256;

  std::array<uint32_t, 0x110000 / kPage>
      pages_{};  // where they begin in ids_; the first page is empty
  std::vector<int64_t> ids_;
};

}  // namespace posenc::text
