#include "text/chat_template/tokens.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "text/chat_template/python_text.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text::jinja {

void refuse_template(int line, const std::string& what) {
  TORCH_CHECK_VALUE(false, "[chat_template] line ", line, ": ", what);
}

namespace {

using TokenKind = TemplateToken::Kind;

constexpr std::size_t kMostWords = 1000;  // of a tag, so that no expression is deep

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return begins_name(c) || is_digit(c); }

// Jinja's newlines, without the last one of the source.
std::string normalized(const std::string& source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') text += source[i];
    if (source[i] == '\r' && source.compare(i, 2, "\r\n") != 0) text += '\n';
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
  // Lines are counted on from the last time.
  int line() {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
    counted_ = at_;
    return line_;
  }
  bool has(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line()}); }
  void skip_blanks() {
    while (const std::size_t blank = blank_at(source_, at_)) at_ += blank;
  }

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
      text = stripped(text, {}, false, true);
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
    if (stripped(std::string_view(text).substr(first)).empty()) text.resize(first);
  }

  void add_tag(char tag, char sign) {
    if (tag != '#') add(tag == '%' ? TokenKind::BlockBegin : TokenKind::OutputBegin, "");
    at_ += sign == '-' || sign == '+' ? 3 : 2;
    if (tag == '#') return skip_comment();
    const std::string_view end = tag == '%' ? "%}" : "}}";
    open_.clear();
    for (std::size_t words = 0;; ++words) {
      skip_blanks();
      if (at_ == source_.size()) refuse_template(line(), "a tag does not end");
      if (open_.empty() && ends_tag(end, tag == '%')) break;
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
      skip_blanks();
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
    if (first == '\'' || first == '"') return read_string(first);
    if (is_digit(first)) return read_number();
    if (begins_name(first)) {
      const std::size_t begin = at_;
      while (at_ < source_.size() && is_word(source_[at_])) ++at_;
      return add(TokenKind::Name, source_.substr(begin, at_ - begin));
    }
    read_symbol(first);
  }

  void read_symbol(char first) {
    for (const std::string_view symbol : {"==", "!=", "<=", ">=", "//", "**"}) {
      if (!has(symbol)) continue;
      at_ += symbol.size();
      return add(TokenKind::Symbol, std::string(symbol));
    }
    if (std::string_view("|.,()[]=:+-~<>*/%{}").find(first) == std::string_view::npos)
      refuse_template(line(), "a tag must not have " +
                                  io::in_quotes(source_.substr(
                                      at_, utf8_length(static_cast<unsigned char>(first)))));
    const std::size_t kind = std::string_view("([{)]}").find(first);
    if (kind < 3) open_.push_back(")]}"[kind]);
    if (kind >= 3 && kind < 6) {
      if (open_.empty() || open_.back() != first)
        refuse_template(line(), io::in_quotes(std::string(1, first)) + " closes nothing");
      open_.pop_back();
    }
    ++at_;
    add(TokenKind::Symbol, std::string(1, first));
  }

  // Digits, which Jinja may have underscores between, and a fraction or an exponent.
  void read_number() {
    const std::size_t begin = at_;
    const auto skip_digits = [&] {
      while (at_ < source_.size() && is_digit(source_[at_])) ++at_;
    };
    const auto digit_at = [&](std::size_t at) {
      return at < source_.size() && is_digit(source_[at]);
    };
    bool is_float = false;
    skip_digits();
    const bool is_item = !tokens_.empty() && tokens_.back().is(TokenKind::Symbol, ".");
    if (!is_item && has(".") && digit_at(at_ + 1)) {
      is_float = true;
      ++at_;
      skip_digits();
    }
    if (!is_item && (has("e") || has("E"))) {
      const std::size_t sign =
          at_ + 1 < source_.size() && (source_[at_ + 1] == '+' || source_[at_ + 1] == '-');
      if (digit_at(at_ + 1 + sign)) {
        is_float = true;
        at_ += 1 + sign;
        skip_digits();
      }
    }
    const std::string text = source_.substr(begin, at_ - begin);
    const bool has_zeros =
        !is_float && text[0] == '0' && text.find_first_not_of('0') != std::string::npos;
    if (has_zeros || (at_ < source_.size() && is_word(source_[at_])))
      refuse_template(line(), "a number must be one of decimal digits. Got " +
                                  io::in_quotes(source_.substr(begin, at_ + 1 - begin)));
    add(is_float ? TokenKind::Float : TokenKind::Integer, text);
  }

  void read_string(char quote) {
    std::string text;
    const std::size_t begin = at_;
    for (++at_; at_ < source_.size() && source_[at_] != quote;) {
      if (source_[at_] == '\\') {
        read_escape(text);
      } else {
        text += source_[at_++];
      }
    }
    if (at_ >= source_.size()) {
      at_ = begin;
      refuse_template(line(), "a string does not end");
    }
    ++at_;
    add(TokenKind::String, text);
  }

  // An escape of Python; what is none stays as it is.
  void read_escape(std::string& text) {
    constexpr std::string_view kNames = "ntrabfv\\'\"", kMeant = "\n\t\r\a\b\f\v\\'\"";
    const char name = at_ + 1 < source_.size() ? source_[at_ + 1] : ' ';
    const std::size_t digits = name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0;
    const std::size_t found = kNames.find(name);
    if (digits > 0) return read_code(text, digits);
    if (is_digit(name) || name == 'N' || (name & 0x80) != 0)
      refuse_template(line(),
                      "a string must not have the escape \\" +
                          source_.substr(at_ + 1, utf8_length(static_cast<unsigned char>(name))) +
                          ", which posenc does not know");
    at_ += 2;
    if (found != std::string_view::npos) {
      text += kMeant[found];
    } else if (name != '\n') {
      text += {'\\', name};
    }
  }

  void read_code(std::string& text, std::size_t digits) {
    const std::string code = source_.substr(at_ + 2, digits);
    const bool is_code = code.size() == digits &&
                         code.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    const auto c =
        is_code ? static_cast<char32_t>(std::stoul(code, nullptr, 16)) : char32_t{0xD800};
    if ((c >= 0xD800 && c < 0xE000) || c > 0x10FFFF)
      refuse_template(line(),
                      "an escape must be the code of a character. Got " + io::in_quotes(code));
    append_character(text, c);
    at_ += 2 + digits;
  }

  const std::string source_;
  std::size_t at_ = 0, counted_ = 0;
  int line_ = 1;
  bool begins_line_ = true;  // whether what follows the last tag is the beginning of a line
  std::string open_;         // what closes the brackets of the tag that are open
  std::vector<TemplateToken> tokens_;
};

}  // namespace

std::vector<TemplateToken> template_tokens(const std::string& source) {
  TORCH_CHECK_VALUE(io::is_utf8(source), "[chat_template] a template must be UTF-8");
  return Lexer(source).tokens();
}

}  // namespace posenc::text::jinja
