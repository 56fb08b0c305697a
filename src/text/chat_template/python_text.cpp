#include "text/chat_template/python_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "text/chat_template/limits.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text::jinja {
namespace {

// Beside White_Space, Python takes the separators U+001C to U+001F for blanks.
bool is_blank(char32_t c) { return unicode::is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ends_line(char32_t c) {
  constexpr std::u32string_view kEnds = U"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
  return kEnds.find(c) != std::u32string_view::npos;
}

std::vector<std::string> split_blanks(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string> parts;
  std::size_t begin = 0, end = text.size();
  while (true) {
    while (!from_right && begin < end && blank_at(text, begin) > 0) begin += blank_at(text, begin);
    while (from_right && begin < end && blank_before(text, end) > 0) end -= blank_before(text, end);
    if (begin == end) break;
    spend(1);
    std::size_t cut = from_right ? end : begin;
    if (static_cast<int64_t>(parts.size()) == most) {
      parts.emplace_back(text.substr(begin, end - begin));
      break;
    }
    if (from_right) {
      while (cut > begin && blank_before(text, cut) == 0) cut = previous_character(text, cut);
      parts.emplace_back(text.substr(cut, end - cut));
      end = cut;
    } else {
      while (cut < end && blank_at(text, cut) == 0) next_character(text, cut);
      parts.emplace_back(text.substr(begin, cut - begin));
      begin = cut;
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace

std::size_t blank_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return 0;
  std::size_t end = at;
  return is_blank(next_character(text, end)) ? end - at : 0;
}

std::size_t blank_before(std::string_view text, std::size_t end) {
  if (end == 0) return 0;
  return blank_at(text, previous_character(text, end));
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) characters += next_character(text, at);
  return characters;
}

std::string utf8_of(std::u32string_view characters) {
  std::string text;
  for (const char32_t c : characters) append_character(text, c);
  return text;
}

std::string stripped(std::string_view text, const std::optional<std::string>& characters, bool left,
                     bool right) {
  const std::u32string given = characters_of(characters.value_or(""));
  const auto goes = [&](char32_t c) {
    return characters ? given.find(c) != std::u32string::npos : is_blank(c);
  };
  while (left && !text.empty()) {
    std::size_t end = 0;
    if (!goes(next_character(text, end))) break;
    text.remove_prefix(end);
  }
  while (right && !text.empty()) {
    const std::size_t begin = previous_character(text, text.size());
    std::size_t at = begin;
    if (!goes(next_character(text, at))) break;
    text.remove_suffix(text.size() - begin);
  }
  return std::string(text);
}

std::vector<std::string> split(std::string_view text, const std::optional<std::string>& separator,
                               int64_t most, bool from_right) {
  if (!separator) return split_blanks(text, most, from_right);
  std::vector<std::string> parts;
  while (static_cast<int64_t>(parts.size()) != most) {
    const std::size_t at = from_right ? text.rfind(*separator) : text.find(*separator);
    if (at == std::string_view::npos) break;
    spend(1);
    const std::size_t after = at + separator->size();
    parts.emplace_back(from_right ? text.substr(after) : text.substr(0, at));
    text = from_right ? text.substr(0, at) : text.substr(after);
  }
  parts.emplace_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, at = 0; begin < text.size(); begin = at) {
    std::size_t end = at;
    spend(1);
    while (at < text.size() && !ends_line(next_character(text, at))) end = at;
    if (end != at && text[at - 1] == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, (keep_ends ? at : end) - begin));
  }
  return lines;
}

std::string replaced(std::string_view text, const std::string& from, const std::string& to,
                     int64_t most) {
  std::string result;
  const std::vector<std::string> parts = split(text, from, most);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    spend_text(to.size());
    result += (i > 0 ? to : "") + parts[i];
  }
  return result;
}

std::optional<std::string> lowered(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    if (c == U'\u03A3') return std::nullopt;  // whose form depends on its neighbours
    const unicode::Lower form = unicode::lowercase(c);
    for (int i = 0; i < form.count; ++i) append_character(result, form.characters[i]);
  }
  return result;
}

std::optional<std::string> uppered(std::string_view text) {
  if (!is_ascii(text)) return std::nullopt;
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), upper);
  return result;
}

std::optional<std::string> titled(std::string_view text) {
  if (!is_ascii(text)) return std::nullopt;
  std::string result(text);
  bool is_first = true;
  for (char& c : result) {
    c = is_first ? upper(c) : lower(c);
    is_first = !is_letter(c);
  }
  return result;
}

std::optional<std::string> capitalized(std::string_view text) {
  if (!is_ascii(text)) return std::nullopt;
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  if (!result.empty()) result[0] = upper(result[0]);
  return result;
}

std::string represented_text(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  constexpr uint32_t kHidden = unicode::Cn | unicode::Cc | unicode::Cf | unicode::Co | unicode::Cs |
                               unicode::Zl | unicode::Zp | unicode::Zs;
  std::string result(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    const std::size_t escape = std::u32string_view(U"\n\r\t\\").find(c);
    if (escape != std::u32string_view::npos) {
      result += {'\\', "nrt\\"[escape]};
    } else if (c == static_cast<char32_t>(quote)) {
      result += {'\\', quote};
    } else if (c != ' ' && (unicode::character(c).category & kHidden) != 0) {
      std::array<char, 16> code = {};
      std::snprintf(code.data(), code.size(),
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    static_cast<unsigned>(c));
      result += code.data();
    } else {
      append_character(result, c);
    }
  }
  return result + quote;
}

}  // namespace posenc::text::jinja
