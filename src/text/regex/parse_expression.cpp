#include <algorithm>
#include <string>
#include <utility>

#include "text/regex/expression.h"
#include "text/regex/properties.h"
#include "text/unicode/utf8.h"

namespace posenc::text {
namespace {

/// Thrown for what this kind of expression lacks; it does not leave parse_expression.
struct NotSimple {};

/// What ends the reader's patience with hostile expressions; Oniguruma then reads them with its own
/// limits.
constexpr int kMostDepth = 50;
constexpr std::size_t kMostBytes = 20000;
constexpr uint32_t kMostTimes = 1000;

class SimpleParser {
 public:
  explicit SimpleParser(std::string_view text) : text_(text) {}

  Expression parse() {
    Expression all = alternatives(true, 0);
    if (at_ != text_.size()) throw NotSimple{};
    return all;
  }

 private:
  bool done() const { return at_ == text_.size(); }
  bool sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!sees(what)) return false;
    at_ += what.size();
    return true;
  }
  char32_t next() {
    if (done()) throw NotSimple{};
    return next_character(text_, at_);
  }

  Expression alternatives(bool outermost, int depth) {
    if (depth > kMostDepth) throw NotSimple{};
    Expression all;
    all.kind = Expression::Kind::Alternatives;
    do all.children.push_back(sequence(outermost, depth));
    while (take("|"));
    if (all.children.size() == 1) return Expression(std::move(all.children[0]));
    return all;
  }

  Expression sequence(bool outermost, int depth) {
    Expression all;
    std::vector<bool> possessive;
    char32_t before = 0;  // a literal, for letters that fold together
    while (!done() && !sees("|") && !sees(")")) {
      const char32_t literal = folded_literal();
      if (literal != 0 && folds_together(before, literal)) throw NotSimple{};
      before = literal;
      Expression one = item(depth);
      possessive.push_back(repetitions(one));
      all.children.push_back(std::move(one));
    }
    for (std::size_t i = 0; i < possessive.size(); ++i) {
      if (possessive[i] && !(outermost && never_gives_back(all.children, i))) throw NotSimple{};
    }
    if (all.children.size() == 1) return Expression(std::move(all.children[0]));
    return all;
  }

  /// Whether a repetition that took all it can would gain nothing from giving something back: what
  /// follows cannot begin with what was taken, or nothing has to follow.
  static bool never_gives_back(const std::vector<Expression>& sequence, std::size_t at) {
    if (sequence[at].children[0].kind != Expression::Kind::Set) return false;
    const CharacterSet& taken = sequence[at].children[0].set;
    for (std::size_t i = at + 1; i < sequence.size(); ++i) {
      if (sequence[i].kind == Expression::Kind::Ahead) return false;
      if (!sequence[i].begins().intersection(taken).is_empty()) return false;
      if (!sequence[i].can_be_empty()) return true;
    }
    return true;
  }

  /// Reads the repetitions of an item. Returns whether the last one is possessive.
  bool repetitions(Expression& one) {
    bool any = false, after_interval = false;
    for (;;) {
      uint32_t least = 0, most = Expression::kNoLimit;
      bool interval = false;
      if (take("?")) {
        most = 1;
      } else if (take("+")) {
        least = 1;
      } else if (take("*")) {
      } else if (sees("{")) {
        read_interval(least, most);
        interval = true;
      } else {
        return false;
      }
      // After an interval a sign repeats it once more; two other repetitions in a row are rare.
      if (any && !after_interval) throw NotSimple{};
      if (one.kind == Expression::Kind::Ahead || one.can_be_empty()) throw NotSimple{};
      Expression repeat;
      repeat.kind = Expression::Kind::Repeat;
      repeat.least = least;
      repeat.most = most;
      repeat.children.push_back(std::move(one));
      one = std::move(repeat);
      any = true;
      after_interval = interval;
      if (interval && (sees("?") || sees("*") || sees("{"))) throw NotSimple{};
      if (interval) continue;
      if (take("?")) {
        one.lazy = true;
      } else if (take("+")) {
        return !(sees("?") || sees("*") || sees("+") || sees("{")) ? true : throw NotSimple{};
      }
    }
  }

  void read_interval(uint32_t& least, uint32_t& most) {
    take("{");
    const bool no_least = sees(",");
    least = no_least ? 0 : count();
    most = least;
    if (take(",")) most = sees("}") && !no_least ? Expression::kNoLimit : count();
    if (!take("}") || most < least || most == 0) throw NotSimple{};
  }

  uint32_t count() {
    uint32_t value = 0;
    const std::size_t begin = at_;
    while (!done() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + static_cast<uint32_t>(text_[at_++] - '0');
      if (value > kMostTimes) throw NotSimple{};
    }
    if (at_ == begin) throw NotSimple{};
    return value;
  }

  static Expression make_set(CharacterSet set) {
    Expression one;
    one.kind = Expression::Kind::Set;
    one.set = std::move(set);
    return one;
  }

  Expression item(int depth) {
    if (sees("(")) return group(depth);
    if (sees("[")) return make_set(folded(bracket(depth)));
    if (take(".")) return make_set(CharacterSet('\n', '\n').complement());
    if (sees("\\")) {
      bool is_class = false;
      CharacterSet set = escape(is_class);
      return make_set(is_class ? std::move(set) : folded(std::move(set)));
    }
    const char32_t c = next();
    if (std::u32string_view(U"^$*+?{").find(c) != std::u32string_view::npos) throw NotSimple{};
    return make_set(folded(CharacterSet(c, c)));
  }

  Expression group(int depth) {
    take("(");
    const bool before = ignore_case_;
    Expression all;
    if (take("?=") || sees("?!")) {
      const bool negative = take("?!");
      all = alternatives(false, depth + 1);
      if (all.kind != Expression::Kind::Set) throw NotSimple{};
      all.kind = Expression::Kind::Ahead;
      all.negative = negative;
    } else {
      if (take("?i:")) {
        ignore_case_ = true;
      } else if (!take("?:") && (sees("?") || sees("*"))) {
        throw NotSimple{};
      }
      all = alternatives(false, depth + 1);
    }
    ignore_case_ = before;
    if (!take(")")) throw NotSimple{};
    return all;
  }

  /// What a letter stands for where case is ignored. Only ASCII letters are known here.
  CharacterSet folded(CharacterSet set) const {
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

  /// The lower-case letter that stands here where case is ignored, or 0.
  char32_t folded_literal() const {
    if (!ignore_case_ || done()) return 0;
    const char32_t lower = static_cast<unsigned char>(text_[at_]) | 0x20u;
    return lower >= 'a' && lower <= 'z' ? lower : 0;
  }

  /// Whether two letters are also one: `ss` finds U+00DF where case is ignored.
  static bool folds_together(char32_t first, char32_t second) {
    for (const char* pair : {"ss", "ff", "fi", "fl", "st"}) {
      if (first == static_cast<char32_t>(pair[0]) && second == static_cast<char32_t>(pair[1]))
        return true;
    }
    return false;
  }

  char32_t hexadecimal(std::size_t least, std::size_t most) {
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

  /// A set or one character after a backslash.
  CharacterSet escape(bool& is_class) {
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
      case 'w': return word_set();
      case 'W': return word_set().complement();
      case 'h': return hexadecimal_set();
      case 'H': return hexadecimal_set().complement();
      default: is_class = false;
    }
    const char32_t one = escaped_character(c);
    return CharacterSet(one, one);
  }

  char32_t escaped_character(char32_t c) {
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

  CharacterSet property(bool negative) {
    if (!take("{")) throw NotSimple{};
    if (take("^")) negative = !negative;
    const std::size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) throw NotSimple{};
    const auto set = property_set(text_.substr(at_, end - at_));
    if (!set) throw NotSimple{};
    at_ = end + 1;
    return negative ? set->complement() : *set;
  }

  CharacterSet bracket(int depth) {
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
        throw NotSimple{};
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

  void bracket_member(CharacterSet& set) {
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
  char32_t bracket_character(CharacterSet& set, bool& is_class) {
    char32_t c = 0;
    if (sees("\\")) {
      if (sees("\\b")) throw NotSimple{};
      const CharacterSet read = escape(is_class);
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

  std::string_view text_;
  std::size_t at_ = 0;
  bool ignore_case_ = false;
};

}  // namespace

std::optional<Expression> parse_expression(std::string_view text) {
  if (text.size() > kMostBytes) return std::nullopt;
  try {
    return SimpleParser(text).parse();
  } catch (const NotSimple&) {
    return std::nullopt;
  }
}

}  // namespace posenc::text
