#include "io/base/quote.h"

#include "io/base/utf8.h"

namespace posenc::io {

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

std::string in_quotes_each(const std::vector<std::string>& texts) {
  std::string list;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_last = i + 1 == texts.size();
    list += (i == 0 ? "" : is_last ? " and " : ", ") + in_quotes(texts[i]);
  }
  return list;
}

}  // namespace posenc::io
