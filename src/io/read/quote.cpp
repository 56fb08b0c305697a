#include "io/read/quote.h"

#include "io/read/utf8.h"

namespace posenc::io {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 120;
  std::string out = "'" + shortened(text, kShown) + "'";
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return out;
}

}  // namespace posenc::io
