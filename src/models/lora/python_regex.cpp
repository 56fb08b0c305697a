// posenc-budget: one grammar, Python's
#include "models/lora/python_regex.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace posenc::lora {
namespace {

using Kind = RegexNode::Kind;
using Characters = std::bitset<128>;

constexpr std::size_t kAnyCount = static_cast<std::size_t>(-1);
constexpr std::size_t kMostExpression = 10'000, kMostName = 1'000, kMostDepth = 50;
constexpr std::size_t kMostSteps = 100'000'000;  // less than a second; names take some thousands

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}
bool is_digit(int c) { return c >= '0' && c <= '9'; }
bool is_octal(int c) { return c >= '0' && c <= '7'; }
bool is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(int c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_space(int c) { return (c >= 9 && c <= 13) || (c >= 28 && c <= 32); }

template <typename Is>
Characters all_that(const Is& is) {
  Characters all;
  for (int c = 0; c < 128; ++c) all[static_cast<std::size_t>(c)] = is(c);
  return all;
}

// \d and the like; nothing for another letter.
Characters of_class(char c) {
  switch (c) {
    case 'd': return all_that(is_digit);
    case 'D': return ~all_that(is_digit);
    case 's': return all_that(is_space);
    case 'S': return ~all_that(is_space);
    case 'w': return all_that(is_word);
    case 'W': return ~all_that(is_word);
    default: return {};
  }
}

class Parser {
 public:
  Parser(const std::string& where, const std::string& text) : where_(where), text_(text) {
    if (text.size() > kMostExpression) refuse("it is too long");
    if (!is_ascii(text)) refuse("characters outside ASCII are not supported");
  }

  RegexNode whole() {
    RegexNode node = choice(0);
    if (at_ < text_.size()) refuse("unbalanced parenthesis");
    return node;
  }

 private:
  struct Flags {
    bool ignores_case = false, is_multiline = false, dot_is_all = false;
  };

  [[noreturn]] void refuse(const std::string& why) const {
    TORCH_CHECK_VALUE(false, where_, "must be a regular expression of Python: ", why, ". Got ",
                      io::in_quotes(text_));
    std::abort();  // not reached
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool is_at_end() const { return at_ == text_.size(); }
  char get(const char* without) {
    if (is_at_end()) refuse(without);
    return text_[at_++];
  }
  bool take(char c) {
    if (is_at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  RegexNode choice(std::size_t depth) {
    if (depth > kMostDepth) refuse("its groups are nested too deeply");
    RegexNode node = {.kind = Kind::Choice};
    do {
      node.parts.push_back(sequence(depth, depth == 0 && node.parts.empty()));
    } while (take('|'));
    return node;
  }

  RegexNode sequence(std::size_t depth, bool may_have_flags) {
    RegexNode node;
    while (!is_at_end() && next() != '|' && next() != ')') {
      const char c = text_[at_++];
      if (c == '(') {
        add_group(node, depth, may_have_flags && node.parts.empty());
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        add_repeat(node, c);
      } else if (c == '^' || c == '$') {
        add_place(node, flags_.is_multiline ? c : c == '^' ? 'A' : 'E');
      } else if (c == '[') {
        add(node, set());
      } else if (c == '.') {
        add(node, all_that([&](int one) { return flags_.dot_is_all || one != '\n'; }));
      } else if (c == '\\') {
        add_escape(node);
      } else {
        add(node, one_of(c));
      }
    }
    return node;
  }

  static void add(RegexNode& node, const Characters& characters) {
    node.parts.push_back({.kind = Kind::Characters, .characters = characters});
  }
  static void add_place(RegexNode& node, char place) {
    node.parts.push_back({.kind = Kind::Place, .place = place});
  }
  Characters one_of(char c) const {
    Characters one;
    one.set(static_cast<std::size_t>(c));
    return in_both_cases(one);
  }
  Characters in_both_cases(const Characters& own) const {
    if (!flags_.ignores_case) return own;
    return own |
           all_that([&](int c) { return is_letter(c) && own[static_cast<std::size_t>(c ^ 32)]; });
  }

  void add_repeat(RegexNode& node, char c) {
    std::size_t least = c == '+' ? 1 : 0, most = c == '?' ? 1 : kAnyCount;
    if (c == '{' && !read_counts(least, most)) return add(node, one_of('{'));
    if (node.parts.empty() || node.parts.back().kind == Kind::Place) refuse("nothing to repeat");
    if (node.parts.back().kind == Kind::Repeat) refuse("multiple repeat");
    if (!take('?') && next() == '+') refuse("possessive repeats are not supported");
    RegexNode repeat = {.kind = Kind::Repeat, .least = least, .most = most};
    repeat.parts.push_back(std::move(node.parts.back()));
    node.parts.back() = std::move(repeat);
  }
  // {2}, {2,}, {,3} or {2,3}; any other is a character.
  bool read_counts(std::size_t& least, std::size_t& most) {
    const std::size_t begin = at_;
    const auto read = [&](std::size_t& count) {
      const std::size_t first = at_;
      while (is_digit(next())) ++at_;
      if (at_ - first > 9) refuse("the repetition number is too large");
      if (at_ > first) count = std::stoul(text_.substr(first, at_ - first));
      return at_ > first;
    };
    const bool has_least = next() != '}' && read(least);
    const bool has_comma = take(',');
    if (has_comma) read(most);
    if (at_ == begin || !take('}')) {
      at_ = begin;
      return false;
    }
    if (!has_comma && has_least) most = least;
    if (most < least) refuse("min repeat greater than max repeat");
    return true;
  }

  void add_group(RegexNode& node, std::size_t depth, bool may_have_flags) {
    const Flags before = flags_;
    RegexNode ahead = {.kind = Kind::Ahead};
    if (take('?')) {
      const char c = get("unexpected end of pattern");
      if (c == '#') {
        while (get("missing ), unterminated comment") != ')') continue;
        return;
      }
      ahead.is_negated = c == '!';
      if (c == 'P') read_group_name();
      if (c == '<') refuse("lookbehind is not supported");
      if (c == '>') refuse("atomic groups are not supported");
      if (c == '(') refuse("conditions are not supported");
      if (c == '=' || c == '!') {
        ahead.parts.push_back(choice(depth + 1));
        node.parts.push_back(std::move(ahead));
        if (!take(')')) refuse("missing ), unterminated subpattern");
        return;
      }
      if (c != ':' && c != 'P' && read_flags(c)) {
        if (!may_have_flags) refuse("global flags not at the start of the expression");
        return;
      }
    }
    node.parts.push_back(choice(depth + 1));
    if (!take(')')) refuse("missing ), unterminated subpattern");
    flags_ = before;
  }
  void read_group_name() {
    if (!take('<')) refuse("references to groups are not supported");
    const std::size_t begin = at_;
    while (get("missing >, unterminated name") != '>') continue;
    const std::string name = text_.substr(begin, at_ - 1 - begin);
    if (name.empty() || is_digit(name[0]) || !std::all_of(name.begin(), name.end(), is_word))
      refuse("bad character in group name");
    if (!names_.insert(name).second) refuse("redefinition of a group name");
  }
  // Those of (?i) and of (?i:...): whether they are the first, which hold for all that follows.
  bool read_flags(char c) {
    std::string on, off;
    for (bool is_off = false;; c = get("missing -, : or )")) {
      if (c == ')' || c == ':') {
        if ((is_off && (off.empty() || c == ')')) || (!is_off && on.empty()))
          refuse("missing flag");
        break;
      }
      if (c == '-' && !is_off) {
        is_off = true;
      } else if (c == 'i' || c == 'm' || c == 's') {
        (is_off ? off : on) += c;
      } else {
        refuse("of flags, only i, m and s are supported");
      }
    }
    for (const auto& [name, flag] :
         {std::pair('i', &flags_.ignores_case), std::pair('m', &flags_.is_multiline),
          std::pair('s', &flags_.dot_is_all)}) {
      const bool is_on = on.find(name) != std::string::npos;
      const bool is_off = off.find(name) != std::string::npos;
      if (is_on && is_off) refuse("flag turned on and off");
      *flag = (*flag || is_on) && !is_off;
    }
    return c == ')';
  }

  void add_escape(RegexNode& node) {
    const char c = get("bad escape (end of pattern)");
    if (c == 'A' || c == 'Z' || c == 'b' || c == 'B') return add_place(node, c);
    const Characters all = of_class(c);
    if (all.any()) return add(node, all);
    const bool is_octal_code =
        is_octal(c) && is_octal(next()) && at_ + 1 < text_.size() && is_octal(text_[at_ + 1]);
    if (is_digit(c) && c != '0' && !is_octal_code) refuse("references to groups are not supported");
    add(node, one_of(character_of(c)));
  }
  // The character of an escape that is one.
  char character_of(char c) {
    static const std::map<char, char> codes = {{'a', '\a'}, {'f', '\f'}, {'n', '\n'},
                                               {'r', '\r'}, {'t', '\t'}, {'v', '\v'}};
    if (const auto found = codes.find(c); found != codes.end()) return found->second;
    if (c == 'u' || c == 'U' || c == 'N') refuse("characters outside ASCII are not supported");
    std::size_t code = 0;
    if (c == 'x') {
      const std::string digits = text_.substr(at_, 2);
      if (digits.size() != 2 ||
          digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
        refuse("incomplete escape");
      code = std::stoul(digits, nullptr, 16);
      at_ += 2;
    } else if (is_octal(c)) {
      code = static_cast<std::size_t>(c - '0');
      for (int i = 0; i < 2 && is_octal(next()); ++i)
        code = code * 8 + static_cast<std::size_t>(text_[at_++] - '0');
    } else if (is_letter(c) || is_digit(c)) {
      refuse("bad escape");
    } else {
      return c;
    }
    if (code > 127) refuse("characters outside ASCII are not supported");
    return static_cast<char>(code);
  }

  Characters set() {
    constexpr const char* kOpen = "unterminated character set";
    Characters all;
    const bool is_negated = take('^');
    for (bool is_first = true; is_first || next() != ']' || is_at_end(); is_first = false) {
      Characters own;
      const int from = read_member(own, kOpen);
      if (is_at_end()) refuse(kOpen);
      if (!take('-')) {
        all |= own;
        continue;
      }
      if (next() == ']' && !is_at_end()) {  // the last one is itself
        all |= own;
        all.set('-');
        break;
      }
      const int to = read_member(own, kOpen);
      if (from < 0 || to < from) refuse("bad character range");
      all |= all_that([&](int c) { return c >= from && c <= to; });
    }
    ++at_;
    all = in_both_cases(all);
    return is_negated ? ~all : all;
  }
  // Its code, -1 for a class.
  int read_member(Characters& own, const char* open) {
    char c = get(open);
    if (c == '\\') {
      c = get(open);
      own = of_class(c);
      if (own.any()) return -1;
      c = c == 'b' ? '\b' : character_of(c);
    }
    own.reset();
    own.set(static_cast<std::size_t>(c));
    return c;
  }

  const std::string& where_;
  const std::string& text_;
  std::size_t at_ = 0;
  Flags flags_;
  std::set<std::string> names_;
};

// Places in a name, one more than it has characters.
using Places = std::vector<bool>;

class Matcher {
 public:
  explicit Matcher(const std::string& name) : name_(name) {}

  bool is_full(const RegexNode& root) {
    Places begin(name_.size() + 1);
    begin[0] = true;
    return after(root, begin).back();
  }

 private:
  // The places at which the node can end that begins at one of these.
  Places after(const RegexNode& node, const Places& from) {
    Places to(from.size());
    steps_ += from.size();
    TORCH_CHECK_VALUE(steps_ < kMostSteps, "[LoraConfig] a regular expression must take at most ",
                      kMostSteps, " steps for a name. Got more for ", io::in_quotes(name_));
    if (is_empty(from)) return to;
    switch (node.kind) {
      case Kind::Characters:
        for (std::size_t i = 0; i < name_.size(); ++i)
          to[i + 1] = from[i] && node.characters[static_cast<std::size_t>(name_[i])];
        return to;
      case Kind::Sequence:
        to = from;
        for (const RegexNode& part : node.parts) to = after(part, to);
        return to;
      case Kind::Choice:
        for (const RegexNode& part : node.parts) add(to, after(part, from));
        return to;
      case Kind::Repeat: return repeated(node, from);
      case Kind::Ahead:
        for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] && follows(node, i);
        return to;
      case Kind::Place:
        for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] && is_place(node.place, i);
        return to;
    }
    return to;
  }

  static bool is_empty(const Places& all) {
    return std::find(all.begin(), all.end(), true) == all.end();
  }
  // Returns whether any of them is new.
  static bool add(Places& all, const Places& more) {
    bool is_new = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      is_new = is_new || (more[i] && !all[i]);
      all[i] = all[i] || more[i];
    }
    return is_new;
  }

  Places repeated(const RegexNode& node, const Places& from) {
    Places at = from;
    // Times that do not move on are as good as any number of them.
    for (std::size_t i = 0; i < std::min(node.least, from.size()); ++i)
      at = after(node.parts[0], at);
    Places all = at;
    const std::size_t more = node.most - node.least;
    for (std::size_t i = 0; i < more; ++i) {
      at = after(node.parts[0], at);
      for (std::size_t k = 0; k < at.size(); ++k) at[k] = at[k] && !all[k];
      if (!add(all, at)) break;
    }
    return all;
  }

  bool follows(const RegexNode& node, std::size_t place) {
    signed char& known = ahead_.try_emplace({&node, place}, -1).first->second;
    if (known < 0) {
      Places begin(name_.size() + 1);
      begin[place] = true;
      known = is_empty(after(node.parts[0], begin)) ? 0 : 1;
    }
    return (known != 0) != node.is_negated;
  }

  bool is_place(char place, std::size_t i) const {
    const std::size_t size = name_.size();
    switch (place) {
      case 'A': return i == 0;
      case 'Z': return i == size;
      case '^': return i == 0 || name_[i - 1] == '\n';
      case '$': return i == size || name_[i] == '\n';
      case 'b':
      case 'B': {
        const bool is_edge = (i > 0 && is_word(name_[i - 1])) != (i < size && is_word(name_[i]));
        return size > 0 && is_edge == (place == 'b');
      }
      default: return i == size || (i + 1 == size && name_[i] == '\n');
    }
  }

  const std::string& name_;
  std::size_t steps_ = 0;
  std::map<std::pair<const RegexNode*, std::size_t>, signed char> ahead_;
};

}  // namespace

PythonRegex::PythonRegex(const std::string& where, const std::string& text)
    : root_(Parser(where, text).whole()) {}

bool PythonRegex::matches(const std::string& name) const {
  TORCH_CHECK_VALUE(is_ascii(name) && name.size() <= kMostName,
                    "[LoraConfig] a name that a regular expression is matched with must have at "
                    "most ",
                    kMostName, " characters of ASCII. Got ", io::in_quotes(name));
  return Matcher(name).is_full(root_);
}

}  // namespace posenc::lora
