#include "io/read/quote.h"

namespace posenc::io {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 120;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

}  // namespace posenc::io
