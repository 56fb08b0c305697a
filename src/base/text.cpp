#include "base/text.h"

#include <algorithm>
#include <cstdint>

namespace posenc::io {

std::size_t utf8_prefix(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const auto lead = static_cast<unsigned char>(text[at++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4) return begin;
    uint32_t code = lead & (0x3f >> more);
    for (int i = 0; i < more; ++i) {
      if (at == text.size() || (text[at] & 0xc0) != 0x80) return begin;
      code = code << 6 | (text[at++] & 0x3f);
    }
    const uint32_t smallest = more == 3 ? 0x10000 : more == 2 ? 0x800 : 0x80;
    if (code < smallest || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return begin;
  }
  return text.size();
}

std::string shortened(std::string_view text, std::size_t most) {
  std::size_t size = std::min(text.size(), most);
  while (size < text.size() && size > 0 && (text[size] & 0xc0) == 0x80) --size;
  std::string out(text.substr(0, size));
  if (!is_utf8(out)) {
    for (char& c : out) c = static_cast<unsigned char>(c) < 0x80 ? c : '?';
  }
  return out + (size < text.size() ? "..." : "");
}

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() &&
                    static_cast<unsigned char>(text[i + 1]) < 0xa0;  // U+0080 to U+009F
    if (c1) ++i;
    out += byte < 0x20 || byte == 0x7f || c1 ? '?' : text[i];
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 120;
  return "'" + printable(shortened(text, kShown)) + "'";
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string in_quotes_each(const std::vector<std::string>& texts) {
  std::string list;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_last = i + 1 == texts.size();
    list += (i == 0 ? "" : is_last ? " and " : ", ") + in_quotes(texts[i]);
  }
  return list;
}

}  // namespace posenc::io
