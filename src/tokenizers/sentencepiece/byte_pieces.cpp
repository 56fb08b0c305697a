#include "tokenizers/sentencepiece/byte_pieces.h"

namespace posenc::text {

const std::array<std::string, 256>& byte_pieces() {
  static const std::array<std::string, 256> pieces = [] {
    constexpr char kDigits[] = "0123456789ABCDEF";
    std::array<std::string, 256> made;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      made[byte] = std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">";
    }
    return made;
  }();
  return pieces;
}

std::optional<uint8_t> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  uint8_t byte = 0;
  for (const char c : piece.substr(3, 2)) {
    const bool is_letter = c >= 'A' && c <= 'F';
    if (!is_letter && !(c >= '0' && c <= '9')) return std::nullopt;
    byte = static_cast<uint8_t>(byte * 16 + (is_letter ? c - 'A' + 10 : c - '0'));
  }
  return byte;
}

}  // namespace posenc::text
