#include "text/chat_template/tokens.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"

namespace posenc::text {

void refuse_template(int line, const std::string& what) {
  TORCH_CHECK_VALUE(false, "[chat_template] line ", line, ": ", what);
}

namespace {

using TokenKind = TemplateToken::Kind;

constexpr std::size_t kMostWords = 1000;  // of a tag, so that no expression is deep
constexpr std::string_view kBlanks = " \t\n\r\f\v";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

// Jinja's newlines, without the last one of the source.
std::string normalized(const std::string& source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') text += source[i];
    if (source[i] == '\r' && source.substr(i, 2) != "\r\n") text += '\n';
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(const std::string& source) : source_(normalized(source)) {}

  std::vector<TemplateToken> tokens() {
    while (at_ < source_.size()) read_text();
    add(TokenKind::End, "");
    return std::move(tokens_);
  }

 private:
  int line() const {
    return 1 + static_cast<int>(std::count(source_.begin(), source_.begin() + place(), '\n'));
  }
  std::ptrdiff_t place() const { return static_cast<std::ptrdiff_t>(at_); }
  bool has(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line()}); }

  // Text up to the next tag, and that tag.
  void read_text() {
    const std::size_t begin = at_;
    constexpr std::array<std::string_view, 3> kTags = {"{%", "{{", "{#"};
    const auto is_tag = [&] {
      return std::any_of(kTags.begin(), kTags.end(), [&](auto tag) { return has(tag); });
    };
    while (at_ < source_.size() && !is_tag()) ++at_;
    std::string text = source_.substr(begin, at_ - begin);
    const bool is_last = at_ == source_.size();
    const char tag = is_last ? ' ' : source_[at_ + 1];
    const char sign = at_ + 2 < source_.size() ? source_[at_ + 2] : ' ';
    if (!is_last && sign == '-') {
      while (!text.empty() && is_blank(text.back())) text.pop_back();
    } else if (!is_last && sign != '+' && tag != '{') {
      strip_line(text);
    }
    if (!text.empty()) add(TokenKind::Text, text);
    if (is_last) return;
    add_tag(tag, sign);
  }

  // lstrip_blocks: a tag that only blanks come before on its line.
  void strip_line(std::string& text) const {
    const std::size_t newline = text.rfind('\n');
    if (newline == std::string::npos && !begins_line_) return;
    const std::size_t first = newline == std::string::npos ? 0 : newline + 1;
    if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(), is_blank))
      text.resize(first);
  }

  void add_tag(char tag, char sign) {
    if (tag == '#') return skip_comment();
    add(tag == '%' ? TokenKind::BlockBegin : TokenKind::OutputBegin, "");
    at_ += sign == '-' || sign == '+' ? 3 : 2;
    const std::string_view end = tag == '%' ? "%}" : "}}";
    for (std::size_t words = 0;; ++words) {
      while (at_ < source_.size() && is_blank(source_[at_])) ++at_;
      if (at_ == source_.size()) refuse_template(line(), "a tag does not end");
      if (ends_tag(end, tag == '%')) break;
      if (words == kMostWords) refuse_template(line(), "a tag must not be so long");
      read_word();
    }
    tokens_.push_back({tag == '%' ? TokenKind::BlockEnd : TokenKind::OutputEnd, "", line()});
  }

  // Takes the end of a tag if it is here, and what its signs take of the text.
  bool ends_tag(std::string_view end, bool trims) {
    const bool has_sign = has("-") || has("+");
    if (source_.compare(at_ + (has_sign ? 1 : 0), end.size(), end) != 0) return false;
    const char sign = has_sign ? source_[at_] : ' ';
    if (sign == '+' && !trims) return false;
    at_ += end.size() + (has_sign ? 1 : 0);
    if (sign == '-') {
      while (at_ < source_.size() && is_blank(source_[at_])) ++at_;
    } else if (trims && sign != '+' && has("\n")) {
      ++at_;
    }
    begins_line_ = source_[at_ - 1] == '\n';
    return true;
  }

  void skip_comment() {
    for (; !ends_tag("#}", true); ++at_)
      if (at_ == source_.size()) refuse_template(line(), "a comment does not end");
  }

  void read_word() {
    const char first = source_[at_];
    const std::size_t begin = at_;
    if (first == '\'' || first == '"') return read_string(first);
    if (is_word(first)) {
      while (at_ < source_.size() && is_word(source_[at_])) ++at_;
      return add(is_digit(first) ? TokenKind::Integer : TokenKind::Name,
                 source_.substr(begin, at_ - begin));
    }
    for (const std::string_view symbol : {"==", "!=", "<=", ">=", "//", "**"}) {
      if (!has(symbol)) continue;
      at_ += symbol.size();
      return add(TokenKind::Symbol, std::string(symbol));
    }
    if (std::string_view("|.,()[]=:+-~<>*/%{}").find(first) == std::string_view::npos)
      refuse_template(line(), "a tag must not have " + io::in_quotes(std::string(1, first)));
    ++at_;
    add(TokenKind::Symbol, std::string(1, first));
  }

  void read_string(char quote) {
    std::string text;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      text += source_[at_] == '\\' ? escaped() : source_[at_];
    }
    if (at_ == source_.size()) refuse_template(line(), "a string does not end");
    ++at_;
    add(TokenKind::String, text);
  }

  char escaped() {
    constexpr std::string_view kNames = "ntr\\'\"", kMeant = "\n\t\r\\'\"";
    ++at_;
    const std::size_t found = at_ < source_.size() ? kNames.find(source_[at_]) : kNames.size();
    if (found >= kNames.size())
      refuse_template(line(), "a string must have no other escapes than \\n, \\t, \\r and quotes");
    return kMeant[found];
  }

  const std::string source_;
  std::size_t at_ = 0;
  bool begins_line_ = true;  // whether what follows the last tag is the beginning of a line
  std::vector<TemplateToken> tokens_;
};

}  // namespace

std::vector<TemplateToken> template_tokens(const std::string& source) {
  return Lexer(source).tokens();
}

}  // namespace posenc::text
