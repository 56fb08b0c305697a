#include "text/decoded_text.h"

#include "text/decoders/replace_all.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace posenc::text {
namespace {

// Python counts four controls as blanks, beside White_Space.
bool is_python_space(char32_t c) { return unicode::is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

}  // namespace

void clean_up_spaces(std::string& text) {
  constexpr const char* kReplacements[][2] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kReplacements) replace_all(text, from, to);
}

void strip_as_python(std::string& text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t last = previous_character(text, end);
    std::size_t at = last;
    if (!is_python_space(next_character(text, at))) break;
    end = last;
  }
  text.resize(end);
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t at = begin;
    if (!is_python_space(next_character(text, at))) break;
    begin = at;
  }
  text.erase(0, begin);
}

}  // namespace posenc::text
