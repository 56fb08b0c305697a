#include "tokenizers/definition/base64.h"

#include <array>
#include <cstdint>

namespace posenc::text {
namespace {

constexpr uint8_t kNoDigit = 64;

constexpr std::array<uint8_t, 256> base64_digits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (uint8_t i = 0; i < 26; ++i) {
    digits['A' + i] = i;
    digits['a' + i] = static_cast<uint8_t>(26 + i);
  }
  for (uint8_t i = 0; i < 10; ++i) digits['0' + i] = static_cast<uint8_t>(52 + i);
  digits['+'] = 62;
  digits['/'] = 63;
  return digits;
}

constexpr std::array<uint8_t, 256> kDigits = base64_digits();

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const std::size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const uint8_t digit = i < digits ? kDigits[static_cast<unsigned char>(text[at + i])] : 0;
      if (digit == kNoDigit) return std::nullopt;
      bits = bits << 6 | digit;
    }
    for (std::size_t i = 0; i + 1 < digits; ++i) {
      bytes.push_back(static_cast<char>(bits >> (16 - 8 * i) & 0xFF));
    }
  }
  return bytes;
}

std::string encode_base64(std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= bytes.size() - at ? kLetters[bits >> (18 - 6 * i) & 63u] : '=');
    }
  }
  return text;
}

}  // namespace posenc::text
