#include "tokenizers/python/byte_class.h"

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

void ByteClass::tokenize(std::string_view text, Scratch&, PythonTokens& tokens) const {
  std::string token;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    token.clear();
    append_character(token, byte);
    tokens.add(token, byte + offset_);
  }
}

std::optional<uint32_t> ByteClass::find(std::string_view token) const {
  if (token.empty()) return std::nullopt;
  std::size_t at = 0;
  const char32_t c = next_character(token, at);
  if (at != token.size() || c > 0xFF) return std::nullopt;
  return static_cast<uint32_t>(c) + offset_;
}

std::optional<std::string> ByteClass::token(uint32_t id) const {
  if (id < offset_ || id >= id_limit()) return std::nullopt;
  std::string text;
  append_character(text, id - offset_);
  return text;
}

std::string ByteClass::bytes_of(const std::vector<std::string>& tokens,
                                const PythonAddedTokens& added) {
  std::string bytes;
  for (const std::string& token : tokens) {
    std::size_t at = 0;
    if (added.id(token) != nullptr || token.empty()) {
      bytes += token;
    } else {
      bytes += static_cast<char>(next_character(token, at));
    }
  }
  return bytes;
}

}  // namespace posenc::text
