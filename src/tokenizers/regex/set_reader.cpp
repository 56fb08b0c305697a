#include "tokenizers/regex/set_reader.h"

#include "tokenizers/regex/properties.h"

namespace posenc::text {

CharacterSet SetReader::folded(CharacterSet set) const {
  if (!ignore_case_) return set;
  CharacterSet all = set;
  for (const auto& range : set.ranges()) {
    if (range.last > 0x7F) throw NotSimple{};
    for (char32_t c = range.first; c <= range.last; ++c) {
      const char32_t lower = c | 0x20;
      if (lower < 'a' || lower > 'z') continue;
      all.add(lower, lower);
      all.add(lower - 32, lower - 32);
      if (lower == 's') all.add(0x17F, 0x17F);    // long s
      if (lower == 'k') all.add(0x212A, 0x212A);  // the sign for kelvin
    }
  }
  return all;
}

char32_t SetReader::hexadecimal(std::size_t least, std::size_t most) {
  char32_t value = 0;
  std::size_t digits = 0;
  for (; digits < most && !done(); ++digits, ++at_) {
    const char c = text_[at_];
    if (c >= '0' && c <= '9') {
      value = value << 4 | static_cast<char32_t>(c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      value = value << 4 | static_cast<char32_t>((c | 0x20) - 'a' + 10);
    } else {
      break;
    }
  }
  if (digits < least || value > 0x10FFFF) throw NotSimple{};
  return value;
}

CharacterSet SetReader::escape(bool& is_class, bool in_brackets) {
  take("\\");
  is_class = true;
  const char32_t c = next();
  switch (c) {
    case 'p':
    case 'P': return property(c == 'P');
    case 'd': return digit_set();
    case 'D': return digit_set().complement();
    case 's': return space_set();
    case 'S': return space_set().complement();
    case 'w':
    case 'W': {
      const CharacterSet set = in_brackets ? word_set_in_brackets() : word_set();
      return c == 'w' ? set : set.complement();
    }
    case 'h': return hexadecimal_set();
    case 'H': return hexadecimal_set().complement();
    default: is_class = false;
  }
  const char32_t one = escaped_character(c);
  return CharacterSet(one, one);
}

char32_t SetReader::escaped_character(char32_t c) {
  switch (c) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    case 'a': return '\a';
    case 'e': return 0x1B;
    case 'u': return hexadecimal(4, 4);
    case 'x': {
      if (!take("{")) {
        const char32_t byte = hexadecimal(2, 2);
        return byte < 0x80 ? byte : throw NotSimple{};  // a byte of UTF-8
      }
      const char32_t point = hexadecimal(1, 8);
      return take("}") ? point : throw NotSimple{};
    }
    default: break;
  }
  const bool letter_or_digit =
      c < 0x80 && (((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9'));
  if (letter_or_digit || c >= 0x80) throw NotSimple{};
  return c;
}

CharacterSet SetReader::property(bool negative) {
  if (!take("{")) throw NotSimple{};
  if (take("^")) negative = !negative;
  const std::size_t end = text_.find('}', at_);
  if (end == std::string_view::npos) throw NotSimple{};
  const auto set = property_set(text_.substr(at_, end - at_));
  if (!set) throw NotSimple{};
  at_ = end + 1;
  return negative ? set->complement() : *set;
}

CharacterSet SetReader::posix() {
  take("[:");
  const bool negative = take("^");
  const std::size_t end = text_.find(":]", at_);
  if (end == std::string_view::npos) throw NotSimple{};
  const auto set = posix_set(text_.substr(at_, end - at_));
  if (!set) throw NotSimple{};
  at_ = end + 2;
  return negative ? set->complement() : *set;
}

CharacterSet SetReader::bracket(int depth) {
  if (depth > kMostDepth) throw NotSimple{};
  take("[");
  const bool negative = take("^");
  if (sees("]")) throw NotSimple{};  // empty, or a literal
  CharacterSet left, set;
  bool intersected = false;
  while (!take("]")) {
    if (take("&&")) {
      left = intersected ? left.intersection(set) : set;
      intersected = true;
      set = {};
    } else if (sees("[:")) {
      if (ignore_case_) throw NotSimple{};
      set.add(posix());
    } else if (sees("[")) {
      set.add(bracket(depth + 1));
    } else {
      bracket_member(set);
    }
  }
  if (intersected) set = left.intersection(set);
  if (negative && ignore_case_) throw NotSimple{};
  if (set.is_empty()) throw NotSimple{};
  return negative ? set.complement() : set;
}

void SetReader::bracket_member(CharacterSet& set) {
  bool is_class = false;
  const char32_t first = bracket_character(set, is_class);
  if (sees("-]")) return;  // the sign itself comes next
  if (is_class || !sees("-")) {
    if (is_class && sees("-")) throw NotSimple{};
    return;
  }
  take("-");
  if (sees("[") || sees("&&")) throw NotSimple{};
  CharacterSet other;
  const char32_t last = bracket_character(other, is_class);
  if (is_class || last < first) throw NotSimple{};
  set.add(first, last);
}

/// Reads a character or a class into `set`.
char32_t SetReader::bracket_character(CharacterSet& set, bool& is_class) {
  char32_t c = 0;
  if (sees("\\")) {
    if (sees("\\b")) throw NotSimple{};
    const CharacterSet read = escape(is_class, true);
    set.add(read);
    c = is_class ? 0 : read.ranges()[0].first;
  } else {
    c = next();
    if (c == '-' && !sees("]") && !set.is_empty()) throw NotSimple{};
    set.add(c, c);
  }
  if (is_class && ignore_case_) throw NotSimple{};
  return c;
}

}  // namespace posenc::text
