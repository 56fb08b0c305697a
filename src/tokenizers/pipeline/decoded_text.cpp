#include "tokenizers/pipeline/decoded_text.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

// The end of the digits that begin at `at`: those of all scripts, as in Python.
std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    std::size_t end = at;
    if (unicode::character(next_character(text, end)).category != unicode::Nd) break;
    at = end;
  }
  return at;
}

// The end of the time stamp that begins at `at`; `at` for none.
std::size_t time_stamp_end(std::string_view text, std::size_t at) {
  if (!text.substr(at).starts_with("<|")) return at;
  const std::size_t whole = digits_end(text, at + 2);
  if (whole == at + 2 || whole >= text.size() || text[whole] != '.') return at;
  const std::size_t end = digits_end(text, whole + 1);
  return end > whole + 1 && text.substr(end).starts_with("|>") ? end + 2 : at;
}

}  // namespace

void remove_time_stamps(std::string& text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = time_stamp_end(text, at);
    if (end == at) kept += text[at];
    at = std::max(end, at + 1);
  }
  text = std::move(kept);
}

void clean_up_spaces(std::string& text) {
  constexpr const char* kReplacements[][2] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
  };
  for (const auto& [from, to] : kReplacements) replace_all(text, from, to);
}

}  // namespace posenc::text
