#include "tokenizers/decoders/replace_all.h"

#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::size_t found = text.find(from);
  if (found == std::string::npos) return;
  std::string changed;
  std::size_t at = 0;
  while (found != std::string::npos) {
    changed.append(text, at, found - at).append(to);
    at = found + from.size();
    if (!from.empty()) {
      found = text.find(from, at);
    } else {
      found = at == text.size() ? std::string::npos
                                : at + utf8_length(static_cast<unsigned char>(text[at]));
    }
  }
  text = std::move(changed.append(text, at));
}

}  // namespace posenc::text
