#include "tokenizers/regex/oniguruma.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/regex/properties.h"
#include "tokenizers/regex/set_reader.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

constexpr std::size_t kMostRewrittenBytes = std::size_t{4} << 20;  // of a rewritten expression

bool is_surrogate(char32_t c) { return c >= 0xD800 && c < 0xE000; }

/// A class of these characters.
std::string bracketed(const CharacterSet& set, bool negative) {
  std::string out = negative ? "[^" : "[";
  const auto add = [&out](char32_t c) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (c >= 0x80) return append_character(out, c);
    out += {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
  };
  for (auto [first, last] : set.ranges()) {
    if (is_surrogate(first)) first = 0xE000;
    if (is_surrogate(last)) last = 0xD7FF;
    if (first > last) continue;
    add(first);
    if (last == first) continue;
    out += '-';
    add(last);
  }
  return out + ']';
}

/// Reads a class in brackets that is no more than a set.
class ClassReader : private SetReader {
 public:
  explicit ClassReader(std::string_view text) : SetReader(text) {}

  /// Its characters, and its size in bytes.
  std::optional<std::pair<CharacterSet, std::size_t>> read() {
    try {
      CharacterSet set = bracket(0);
      return std::pair(std::move(set), at_);
    } catch (const NotSimple&) {
      return std::nullopt;
    }
  }
};

class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : text_(text) {}

  std::string rewrite() {
    while (at_ < text_.size()) {
      if (out_.size() > kMostRewrittenBytes)
        refuse("have at most 4 MiB where classes are written as characters", text_);
      step();
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& rule, std::string_view got) const {
    throw TokenizerError("Regex: the expression must " + rule + ". Got " + io::in_quotes(got));
  }
  bool sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void copy(std::size_t bytes) {
    out_ += text_.substr(at_, bytes);
    at_ = std::min(at_ + bytes, text_.size());
  }

  void step() {
    if (sees("\\")) return escape();
    if (depth_ > 0) return in_brackets();
    if (sees("(?#")) {
      at_ = std::min(text_.find(')', at_), text_.size() - 1) +
            1;  // Oniguruma would have skipped it, too
    } else if (sees("(")) {
      outside_.push_back(options_);
      sees("(?") ? options() : copy(1);
    } else if (sees(")")) {
      close();
    } else if (sees("[")) {
      if (!options_.ignores_case || !without_case()) open();
    } else if (options_.is_extended && sees("#")) {  // a comment, which may have anything in it
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      copy(1);
    }
  }

  /// Writes a class in brackets with both forms of its letters, of which Oniguruma may not know the
  /// newest, and lets it add what else is equal. Returns false for one that is more than a set.
  bool without_case() {
    const bool negative = sees("[^");
    const auto read = ClassReader(text_.substr(at_)).read();
    if (!read) return false;
    at_ += read->second;
    // Of a negative class the letters that it excludes get both forms.
    out_ += bracketed(with_both_cases(negative ? read->first.complement() : read->first), negative);
    return true;
  }

  void open() {
    ++depth_;
    copy(sees("[^") ? 2 : 1);
    if (sees("]") && text_.find(']', at_ + 1) != std::string_view::npos) copy(1);  // a literal
  }

  void in_brackets() {
    if (sees("[:")) {
      const std::size_t end = text_.find(":]", at_ + 2);
      if (end != std::string_view::npos) return posix(end);
    }
    if (sees("[")) return open();
    if (sees("]")) --depth_;
    // A sign before a class is one of the characters.
    if (sees("-\\") && is_class_letter(at_ + 2)) out_ += '\\';
    copy(1);
  }

  bool is_class_letter(std::size_t at) const {
    return at < text_.size() &&
           std::string_view("dDsSwWhHpP").find(text_[at]) != std::string_view::npos;
  }

  void posix(std::size_t end) {
    std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
    const bool negative = name.starts_with("^");
    if (negative) name.remove_prefix(1);
    const auto set = posix_set(name);
    if (!set)
      refuse("have only POSIX's classes and `word` in [:..:]", text_.substr(at_, end + 2 - at_));
    at_ = end + 2;
    put(*set, negative);
  }

  /// Options change what classes are, and how text is read.
  void options() {
    std::size_t end = at_ + 2;
    while (end < text_.size() &&
           std::string_view("imxWDSPyCIL-").find(text_[end]) != std::string_view::npos)
      ++end;
    if (end < text_.size() && (text_[end] == ':' || text_[end] == ')' || text_[end] == '{')) {
      const std::string_view letters = text_.substr(at_ + 2, end - at_ - 2);
      if (letters.find_first_of("WDSPyCIL") != std::string_view::npos) {
        refuse("have no options but i, m and x", text_);
      }
      const std::string_view on = letters.substr(0, letters.find('-'));
      if (letters.find('x') != std::string_view::npos)
        options_.is_extended = on.find('x') != std::string_view::npos;
      if (letters.find('i') != std::string_view::npos)
        options_.ignores_case = on.find('i') != std::string_view::npos;
      if (text_[end] == ')') {  // for the rest of the group outside
        outside_.pop_back();
        return copy(end + 1 - at_);
      }
      return copy(end + 1 - at_);
    }
    copy(2);
  }

  void close() {
    if (!outside_.empty()) {
      options_ = outside_.back();
      outside_.pop_back();
    }
    copy(1);
  }

  void escape() {
    const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    switch (letter) {
      case 'w':
      case 'W': return replace(depth_ > 0 ? word_set_in_brackets() : word_set(), letter == 'W');
      case 'd':
      case 'D': return replace(digit_set(), letter == 'D');
      case 'p':
      case 'P':
        if (at_ + 2 < text_.size() && text_[at_ + 2] == '{') return property(letter == 'P');
        break;
      case 'b':
      case 'B':
        if (depth_ == 0) return boundary(letter == 'B');
        break;
      case 'X':
      case 'y':
      case 'Y':
        if (depth_ == 0)
          refuse("have no \\X, \\y and \\Y, whose clusters change with each version of Unicode",
                 text_);
        break;
      case 'c': return copy(3);
      case 'C':
      case 'M': return copy(4);
      default: break;
    }
    copy(2);
  }

  void replace(const CharacterSet& set, bool negative) {
    at_ += 2;
    put(set, negative);
  }

  void put(const CharacterSet& set, bool negative) {
    // Outside of brackets a class does not ignore case.
    if (depth_ > 0 && options_.ignores_case && with_both_cases(set) != set) {
      refuse(
          "not ignore case in brackets with a class such as \\p{Lu} and something that is no set "
          "of "
          "characters, since Oniguruma's letters may be older",
          text_);
    }
    out_ += depth_ > 0 ? bracketed(set, negative) : "(?-i:" + bracketed(set, negative) + ")";
  }

  void property(bool negative) {
    const std::size_t begin = at_ + 3, end = text_.find('}', begin);
    if (end == std::string_view::npos) return copy(2);  // Oniguruma has a message for it
    std::string_view name = text_.substr(begin, end - begin);
    if (name.starts_with("^")) {
      negative = !negative;
      name.remove_prefix(1);
    }
    const auto set = property_set(name);
    if (!set)
      refuse("name general categories or scripts in \\p{..}", text_.substr(at_, end + 1 - at_));
    at_ = end + 1;
    put(*set, negative);
  }

  void boundary(bool negative) {
    at_ += 2;
    const std::string word = "(?-i:" + bracketed(word_set(), false) + ")";
    const std::string same = "(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + ")";
    const std::string other = "(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + ")";
    out_ += "(?:" + (negative ? same : other) + ")";
  }

  std::string_view text_;
  std::string out_;
  std::size_t at_ = 0;
  int depth_ = 0;  // of brackets
  struct Options {
    bool ignores_case = false, is_extended = false;
  };
  Options options_;
  std::vector<Options> outside_;  // of each group that is open
};

}  // namespace

std::string with_unicode_16(std::string_view expression) { return Rewriter(expression).rewrite(); }

}  // namespace posenc::text
