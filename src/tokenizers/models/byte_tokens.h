#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizers/models/vocabulary.h"

namespace posenc::text {

/// The ids of the tokens `<0x00>` to `<0xFF>`, of which byte_fallback makes what the vocabulary
/// lacks.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < ids_.size(); ++byte) {
      const std::string token = {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
      if (const auto id = vocabulary.id(token)) ids_[byte] = *id;
    }
  }

  /// Whether every byte of `text` has a token.
  bool has_all(std::string_view text) const {
    return std::all_of(text.begin(), text.end(),
                       [&](char byte) { return ids_[static_cast<unsigned char>(byte)] >= 0; });
  }
  uint32_t id(char byte) const {
    return static_cast<uint32_t>(ids_[static_cast<unsigned char>(byte)]);
  }

 private:
  std::array<int64_t, 256> ids_ = filled();

  static std::array<int64_t, 256> filled() {
    std::array<int64_t, 256> none;
    none.fill(-1);
    return none;
  }
};

}  // namespace posenc::text
