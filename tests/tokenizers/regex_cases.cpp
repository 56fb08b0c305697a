// Searches for regex_test.py: a line each, and a line of answers.
//
//     regex C..    takes an expression: `simple`, `general` or the error
//     literal C..  takes a text to search for
//     find C..     the matches in a text, as BEGIN:END in characters, or the error
//     all          those in the text of all characters in order, where matches that touch are one
//
// Characters are hexadecimal numbers.
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "posenc/tokenizers/error.h"
#include "tokenizers/regex/regex.h"
#include "tokenizers/unicode/utf8.h"

namespace {

using namespace posenc::text;

std::string read_text(std::istream& words) {
  std::string text;
  for (uint32_t c; words >> std::hex >> c;) append_character(text, c);
  return text;
}

std::string all_characters() {
  std::string text;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xD800 || c >= 0xE000) append_character(text, c);
  }
  return text;
}

std::string matches(const Pattern& pattern, const std::string& text) {
  std::vector<std::size_t> numbers(text.size() + 1);  // of the character at each byte
  for (std::size_t at = 0, count = 0; at < text.size(); ++count) {
    numbers[at] = count;
    next_character(text, at);
    numbers[at] = count + 1;
  }
  std::ostringstream out;
  Pattern::Matches found(pattern, text);
  for (Pattern::Match match{}; found.next(match);) {
    out << numbers[match.begin] << ':' << numbers[match.end] << ' ';
  }
  return out.str();
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  std::optional<Pattern> pattern;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string question;
    words >> question;
    const std::string text = question == "all" ? all_characters() : read_text(words);
    try {
      if (question == "find" || question == "all") {
        std::cout << (pattern ? matches(*pattern, text) : "error: no expression") << '\n';
      } else {
        pattern.reset();
        pattern = question == "literal" ? Pattern::literal(text) : Pattern::regex(text);
        std::cout << (pattern->is_simple() ? "simple\n" : "general\n");
      }
    } catch (const posenc::TokenizerError& error) {
      std::cout << "error: " << error.what() << '\n';
    }
  }
}
