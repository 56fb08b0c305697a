#include <algorithm>
#include <string>
#include <utility>

#include "tokenizers/regex/expression.h"
#include "tokenizers/regex/set_reader.h"

namespace posenc::text {
namespace {

/// What ends the reader's patience with hostile expressions; Oniguruma then reads them with its own
/// limits.
constexpr std::size_t kMostSimpleBytes = 20000;
constexpr uint32_t kMostTimes = 1000;

class SimpleParser : private SetReader {
 public:
  explicit SimpleParser(std::string_view text) : SetReader(text) {}

  Expression parse() {
    Expression all = alternatives(true, 0);
    if (at_ != text_.size()) throw NotSimple{};
    return all;
  }

 private:
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
      CharacterSet set = escape(is_class, false);
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

  /// The lower-case form of the letter that comes next where case is ignored, or 0.
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
};

}  // namespace

std::optional<Expression> parse_expression(std::string_view text) {
  if (text.size() > kMostSimpleBytes) return std::nullopt;
  try {
    return SimpleParser(text).parse();
  } catch (const NotSimple&) {
    return std::nullopt;
  }
}

}  // namespace posenc::text
