#include "tokenizers/definition/json_cursor.h"

#include <cstdint>
#include <cstring>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

using nlohmann::json;

constexpr std::size_t kDeepest = 125;  // of a value two levels down: serde_json reads 127

// For each of the eight bytes of `word`, whether it ends a run of plain characters of a string: a
// quote, a backslash, or a control character. The top bit of the byte is set; bytes above the first
// such one may be wrong.
uint64_t special_bytes(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  const auto zero_bytes = [&](uint64_t x) { return (x - kOnes) & ~x & kTops; };
  return zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\') |
         ((word - kOnes * 0x20) & ~word & kTops);
}

}  // namespace

void JsonCursor::fail() const {
  throw TokenizerError("must have JSON in UTF-8 as " + std::string(what_) +
                       ". Got an error at byte " + std::to_string(at_) + " of it");
}

void JsonCursor::refuse(const char* kind) const {
  if (at_ >= text_.size() || std::strchr("{[\"-0123456789tfn", text_[at_]) == nullptr) fail();
  JsonCursor copy = *this;
  throw TokenizerError("must have " + std::string(kind) + " at byte " + std::to_string(at_) +
                       " of " + std::string(what_) + ". Got " + io::in_quotes(copy.raw()));
}

bool JsonCursor::next_is(char c) {
  skip_blanks();
  return at_ < text_.size() && text_[at_] == c;
}

// The end of the characters from `at` on that stand for themselves in a string.
std::size_t JsonCursor::end_of_plain(std::size_t at) const {
  for (; at + 8 <= text_.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text_.data() + at, 8);
    if (special_bytes(word) != 0) break;
  }
  while (at < text_.size() && text_[at] != '"' && text_[at] != '\\' &&
         static_cast<unsigned char>(text_[at]) >= 0x20) {
    ++at;
  }
  return at;
}

std::string_view JsonCursor::string() {
  open('"', "a string");
  const std::size_t begin = at_;
  at_ = end_of_plain(at_);
  if (at_ < text_.size() && text_[at_] == '"') return text_.substr(begin, at_++ - begin);
  unescaped_.assign(text_, begin, at_ - begin);
  for (;;) {
    if (at_ >= text_.size()) fail();
    const char c = text_[at_];
    if (c == '"') break;
    if (c != '\\') fail();
    ++at_;
    escape();
    const std::size_t next = end_of_plain(at_);
    unescaped_.append(text_, at_, next - at_);
    at_ = next;
  }
  ++at_;
  return unescaped_;
}

void JsonCursor::escape() {
  if (at_ >= text_.size()) fail();
  const char c = text_[at_++];
  switch (c) {
    case '"':
    case '\\':
    case '/': unescaped_ += c; return;
    case 'b': unescaped_ += '\b'; return;
    case 'f': unescaped_ += '\f'; return;
    case 'n': unescaped_ += '\n'; return;
    case 'r': unescaped_ += '\r'; return;
    case 't': unescaped_ += '\t'; return;
    case 'u': break;
    default: fail();
  }
  char32_t character = hex4();
  if (character >= 0xDC00 && character < 0xE000) fail();
  if (character >= 0xD800 && character < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") fail();
    at_ += 2;
    const char32_t low = hex4();
    if (low < 0xDC00 || low >= 0xE000) fail();
    character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
  }
  append_character(unescaped_, character);
}

char32_t JsonCursor::hex4() {
  if (at_ + 4 > text_.size()) fail();
  char32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = text_[at_++];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail();
    value = value * 16 + static_cast<char32_t>(digit);
  }
  return value;
}

std::string_view JsonCursor::number() {
  skip_blanks();
  const std::size_t begin = at_;
  if (at_ >= text_.size() || (text_[at_] != '-' && (text_[at_] < '0' || text_[at_] > '9')))
    refuse("a number");
  const auto digits = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == first) fail();
    return at_ - first;
  };
  const auto next = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
  if (next('-')) ++at_;
  const bool zero = next('0');
  if (digits() > 1 && zero) fail();
  if (next('.')) {
    ++at_;
    digits();
  }
  if (next('e') || next('E')) {
    ++at_;
    if (next('+') || next('-')) ++at_;
    digits();
  }
  return text_.substr(begin, at_ - begin);
}

std::string_view JsonCursor::raw() {
  skip_blanks();
  const std::size_t begin = at_;
  std::size_t depth = 0;
  do {
    skip_blanks();
    if (at_ >= text_.size()) fail();
    switch (text_[at_]) {
      case '{':
      case '[':
        if (++depth > kDeepest) fail();
        ++at_;
        break;
      case '}':
      case ']':
        if (depth == 0) fail();
        --depth;
        ++at_;
        break;
      case ',':
      case ':':
        if (depth == 0) fail();
        ++at_;
        break;
      case '"':
        for (at_ = end_of_plain(at_ + 1); at_ < text_.size() && text_[at_] == '\\';)
          at_ = end_of_plain(at_ + 2);
        if (at_ >= text_.size() || text_[at_] != '"') fail();
        ++at_;
        break;
      default: {
        const std::size_t first = at_;
        while (at_ < text_.size() && std::strchr("{}[],:\" \n\r\t", text_[at_]) == nullptr) ++at_;
        if (at_ == first) fail();
      }
    }
  } while (depth > 0);
  return text_.substr(begin, at_ - begin);
}

json JsonCursor::value() {
  const std::string_view text = raw();
  json parsed = json::parse(text.begin(), text.end(), nullptr, false);
  if (parsed.is_discarded()) fail();
  return parsed;
}

void JsonCursor::end() {
  skip_blanks();
  if (at_ != text_.size()) fail();
}

json json_value(std::string_view text, std::string_view what) {
  JsonCursor cursor(text, what);
  json parsed = cursor.value();
  cursor.end();
  return parsed;
}

}  // namespace posenc::text
