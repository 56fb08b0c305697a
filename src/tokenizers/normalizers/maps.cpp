// The normalisers that replace each character by itself: Lowercase, StripAccents, Nmt, ByteLevel.

#include <algorithm>

#include "tokenizers/normalizers/character_map.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

bool nmt_drops(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}

bool nmt_makes_blank(char32_t c) {
  constexpr char32_t kBlanks[] = {0x09,   0x0A,   0x0C,   0x0D,   0x1680, 0x200B, 0x200C, 0x200D,
                                  0x200E, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  return std::find(std::begin(kBlanks), std::end(kBlanks), c) != std::end(kBlanks);
}

std::array<std::string, 256> make_byte_level_alphabet() {
  std::array<std::string, 256> alphabet;
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool is_seen = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    append_character(alphabet[byte], is_seen ? byte : next++);
  }
  return alphabet;
}

}  // namespace

const std::array<std::string, 256>& byte_level_alphabet() {
  static const auto alphabet = make_byte_level_alphabet();
  return alphabet;
}

NormalizerPtr make_lowercase() {
  return std::make_unique<MapNormalizer>([](char32_t c) {
    Mapped mapped;
    const unicode::Lower lower = unicode::lowercase(c);
    for (int i = 0; i < lower.count; ++i) append_character(mapped.text, lower.characters[i]);
    return mapped;
  });
}

NormalizerPtr make_strip_accents() {
  return std::make_unique<MapNormalizer>([](char32_t c) {
    Mapped mapped;
    if (!unicode::is_mark(c)) append_character(mapped.text, c);
    return mapped;
  });
}

NormalizerPtr make_nmt() {
  return std::make_unique<MapNormalizer>([](char32_t c) {
    Mapped mapped;
    if (!nmt_drops(c)) append_character(mapped.text, nmt_makes_blank(c) ? U' ' : c);
    return mapped;
  });
}

NormalizerPtr make_byte_level_normalizer() {
  return std::make_unique<MapNormalizer>([](char32_t c) {
    std::string bytes;
    append_character(bytes, c);
    Mapped mapped;
    for (const char byte : bytes) {
      mapped.text += byte_level_alphabet()[static_cast<unsigned char>(byte)];
    }
    return mapped;
  });
}

}  // namespace posenc::text
