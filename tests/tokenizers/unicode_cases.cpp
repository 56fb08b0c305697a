// Answers questions about characters, for unicode_test.py: a line each, and a line of answers.
//
//     flags                 the flags of all scalar values, in hexadecimal
//     categories            the bits of their general categories
//     lower                 the lower-case forms of all scalar values
//     scripts               the numbers of their scripts
//     nfd|nfc|nfkd|nfkc C.. the normal form of a text: CHARACTER:CHANGE.., or = if it stays as it
//     is clusters C..          the number of characters of each grapheme cluster of a text
//
// Characters are hexadecimal numbers.
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace {

using namespace posenc::text;

template <typename Answer>
void print_all(Answer answer) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c < 0xD800 || c >= 0xE000) answer(c);
  }
  std::cout << '\n';
}

std::string read_text(std::istream& words) {
  std::string text;
  for (uint32_t c; words >> std::hex >> c;) append_character(text, c);
  return text;
}

void print_form(std::istream& words, unicode::Form form) {
  std::vector<Change> changes;
  if (!unicode::normalize(read_text(words), form, changes)) {
    std::cout << "=\n";
    return;
  }
  for (const Change& c : changes) {
    std::cout << std::hex << static_cast<uint32_t>(c.character) << ':' << std::dec << c.change
              << ' ';
  }
  std::cout << '\n';
}

void print_clusters(std::istream& words) {
  const std::string text = read_text(words);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = unicode::grapheme_end(text, at);
    int count = 0;
    for (; at < end; ++count) next_character(text, at);
    std::cout << std::dec << count << ' ';
  }
  std::cout << '\n';
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  const std::map<std::string, unicode::Form> forms = {{"nfd", unicode::Form::Nfd},
                                                      {"nfc", unicode::Form::Nfc},
                                                      {"nfkd", unicode::Form::Nfkd},
                                                      {"nfkc", unicode::Form::Nfkc}};
  std::cout << std::hex;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string question;
    words >> question;
    if (const auto form = forms.find(question); form != forms.end()) {
      print_form(words, form->second);
    } else if (question == "clusters") {
      print_clusters(words);
    } else if (question == "flags") {
      print_all([](char32_t c) { std::cout << std::hex << unicode::character(c).flags << ' '; });
    } else if (question == "categories") {
      print_all([](char32_t c) { std::cout << std::hex << unicode::character(c).category << ' '; });
    } else if (question == "scripts") {
      print_all([](char32_t c) { std::cout << std::hex << int{unicode::script_of(c)} << ' '; });
    } else if (question == "lower") {
      print_all([](char32_t c) {
        const unicode::Lower lower = unicode::lowercase(c);
        for (int i = 0; i < lower.count; ++i) {
          std::cout << std::hex << (i == 0 ? "" : ",")
                    << static_cast<uint32_t>(lower.characters[i]);
        }
        std::cout << ' ';
      });
    } else {
      std::cerr << "unicode_cases: unknown question " << question << '\n';
      return 1;
    }
  }
}
