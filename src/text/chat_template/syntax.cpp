#include "text/chat_template/syntax.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/text.h"
#include "text/chat_template/tokens.h"

namespace posenc::text {
namespace {

using TokenKind = TemplateToken::Kind;
using ExpressionKind = TemplateExpression::Kind;

constexpr int kDeepest = 100;

class Parser {
 public:
  explicit Parser(const std::string& source) : tokens_(template_tokens(source)) {}

  std::vector<TemplateStatement> whole() {
    std::vector<TemplateStatement> all = statements({});
    if (!next().is(TokenKind::End)) refuse_next("must not be here");
    return all;
  }

 private:
  const TemplateToken& next(std::size_t after = 0) const {
    return tokens_[std::min(at_ + after, tokens_.size() - 1)];
  }
  bool is_symbol(const char* text) const { return next().is(TokenKind::Symbol, text); }
  bool is_name(const char* text) const { return next().is(TokenKind::Name, text); }
  bool is_block(const char* name) const {
    return next().is(TokenKind::BlockBegin) && next(1).is(TokenKind::Name, name);
  }
  bool take_symbol(const char* text) {
    if (!is_symbol(text)) return false;
    ++at_;
    return true;
  }
  bool take_name(const char* text) {
    if (!is_name(text)) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void refuse_next(const std::string& rule) const {
    refuse_template(next().line, (next().text.empty() ? "the end of a tag or of the template"
                                                      : io::in_quotes(next().text)) +
                                     " " + rule);
  }
  std::string expect(TokenKind kind, const char* text, const char* what) {
    if (!next().is(kind, text)) refuse_next(std::string("is where ") + what + " must be");
    return tokens_[at_++].text;
  }

  // Those before a block with one of these names.
  std::vector<TemplateStatement> statements(const std::vector<const char*>& ends) {
    const Deeper deeper(*this);
    std::vector<TemplateStatement> all;
    while (!next().is(TokenKind::End)) {
      for (const char* end : ends)
        if (is_block(end)) return all;
      all.push_back(statement());
    }
    if (!ends.empty()) refuse_next(std::string("is where ") + ends.back() + " must be");
    return all;
  }

  TemplateStatement statement() {
    const int line = next().line;
    if (next().is(TokenKind::Text))
      return {TemplateStatement::Kind::Text, line, tokens_[at_++].text};
    if (next().is(TokenKind::OutputBegin)) {
      ++at_;
      TemplateStatement output = {TemplateStatement::Kind::Output, line, "", {expression()}};
      expect(TokenKind::OutputEnd, nullptr, "}}");
      return output;
    }
    expect(TokenKind::BlockBegin, nullptr, "a tag");
    if (take_name("set")) return set_statement(line);
    if (take_name("for")) return for_statement(line);
    if (take_name("if")) return if_statement(line);
    refuse_next("is a statement that posenc does not know: it has set, for and if");
  }

  void end_block() { expect(TokenKind::BlockEnd, nullptr, "%}"); }
  void end_block(const char* name) {
    expect(TokenKind::BlockBegin, nullptr, name);
    expect(TokenKind::Name, name, name);
    end_block();
  }

  TemplateStatement set_statement(int line) {
    TemplateStatement set = {TemplateStatement::Kind::Set, line,
                             expect(TokenKind::Name, nullptr, "a name")};
    expect(TokenKind::Symbol, "=", "=");
    set.expression = {expression()};
    end_block();
    return set;
  }

  TemplateStatement for_statement(int line) {
    TemplateStatement loop = {TemplateStatement::Kind::For, line,
                              expect(TokenKind::Name, nullptr, "a name")};
    expect(TokenKind::Name, "in", "in");
    loop.expression = {expression()};
    end_block();
    loop.body = statements({"endfor"});
    end_block("endfor");
    return loop;
  }

  TemplateStatement if_statement(int line) {
    const Deeper deeper(*this);
    TemplateStatement branch = {TemplateStatement::Kind::If, line, "", {expression()}};
    end_block();
    branch.body = statements({"elif", "else", "endif"});
    if (is_block("elif")) {
      at_ += 2;
      branch.otherwise = {if_statement(line)};
      return branch;
    }
    if (is_block("else")) {
      at_ += 2;
      end_block();
      branch.otherwise = statements({"endif"});
    }
    end_block("endif");
    return branch;
  }

  static TemplateExpression made(ExpressionKind kind, int line,
                                 std::vector<TemplateExpression> parts, std::string name = {}) {
    return {kind, line, std::move(name), std::move(parts)};
  }
  static TemplateExpression negated(TemplateExpression of) {
    const int line = of.line;
    return made(ExpressionKind::Not, line, {std::move(of)});
  }

  TemplateExpression expression() {
    const Deeper deeper(*this);
    TemplateExpression left = both();
    while (is_name("or")) left = with_right(ExpressionKind::Or, std::move(left), &Parser::both);
    return left;
  }
  TemplateExpression both() {
    TemplateExpression left = negation();
    while (is_name("and"))
      left = with_right(ExpressionKind::And, std::move(left), &Parser::negation);
    return left;
  }
  TemplateExpression negation() {
    const Deeper deeper(*this);
    return take_name("not") ? negated(negation()) : comparison();
  }
  TemplateExpression comparison() {
    TemplateExpression left = filtered();
    if (is_symbol("=="))
      return with_right(ExpressionKind::Equal, std::move(left), &Parser::filtered);
    if (is_symbol("!="))
      return negated(with_right(ExpressionKind::Equal, std::move(left), &Parser::filtered));
    const bool is_not = is_name("not") && next(1).is(TokenKind::Name, "in");
    if (is_not) ++at_;
    if (!is_name("in")) return left;
    TemplateExpression in = with_right(ExpressionKind::In, std::move(left), &Parser::filtered);
    return is_not ? negated(std::move(in)) : in;
  }
  TemplateExpression with_right(ExpressionKind kind, TemplateExpression left,
                                TemplateExpression (Parser::*right)()) {
    const int line = tokens_[at_++].line;
    std::vector<TemplateExpression> parts = {std::move(left)};
    parts.push_back((this->*right)());
    return made(kind, line, std::move(parts));
  }

  // A value with its attributes, items and filters.
  TemplateExpression filtered() {
    TemplateExpression value = primary();
    while (true) {
      const int line = next().line;
      if (take_symbol(".")) {
        const std::string name = expect(TokenKind::Name, nullptr, "the name of an attribute");
        value = made(ExpressionKind::Attribute, line, {std::move(value)}, name);
      } else if (take_symbol("[")) {
        value = made(ExpressionKind::Item, line, {std::move(value), expression()});
        expect(TokenKind::Symbol, "]", "]");
      } else if (take_symbol("|")) {
        const std::string name = expect(TokenKind::Name, nullptr, "the name of a filter");
        std::vector<TemplateExpression> parts = {std::move(value)};
        if (take_symbol("(")) add_arguments(parts);
        value = made(ExpressionKind::Filter, line, std::move(parts), name);
      } else {
        return value;
      }
    }
  }

  // Up to the closing bracket, which is taken.
  void add_arguments(std::vector<TemplateExpression>& parts) {
    while (!take_symbol(")")) {
      const bool is_named = next().is(TokenKind::Name) && next(1).is(TokenKind::Symbol, "=");
      const TemplateToken name = next();
      if (is_named) at_ += 2;
      TemplateExpression value = expression();
      parts.push_back(is_named
                          ? made(ExpressionKind::Argument, name.line, {std::move(value)}, name.text)
                          : std::move(value));
      if (!is_symbol(")")) expect(TokenKind::Symbol, ",", "a comma or a bracket");
    }
  }

  TemplateExpression primary() {
    const bool is_negative = is_symbol("-") && next(1).is(TokenKind::Integer);
    if (is_negative) ++at_;
    const TemplateToken token = next();
    ++at_;
    if (token.is(TokenKind::String))
      return {ExpressionKind::Literal, token.line, "", {}, token.text};
    if (token.is(TokenKind::Integer)) return integer(token, is_negative ? -1 : 1);
    if (token.is(TokenKind::Name)) return named(token);
    if (token.is(TokenKind::Symbol, "(")) {
      TemplateExpression inner = expression();
      expect(TokenKind::Symbol, ")", ")");
      return inner;
    }
    --at_;
    refuse_next("is where a value must be");
  }
  static TemplateExpression integer(const TemplateToken& token, int64_t sign) {
    int64_t value = 0;
    const char* const end = token.text.data() + token.text.size();
    const auto [last, error] = std::from_chars(token.text.data(), end, value);
    if (last != end || error != std::errc())
      refuse_template(token.line, io::in_quotes(token.text) + " is not an integer");
    return {ExpressionKind::Literal, token.line, "", {}, sign * value};
  }
  static TemplateExpression named(const TemplateToken& token) {
    static const std::map<std::string, nlohmann::json> kConstants = {
        {"true", true},   {"True", true},    {"false", false},
        {"False", false}, {"none", nullptr}, {"None", nullptr}};
    const auto found = kConstants.find(token.text);
    if (found == kConstants.end()) return {ExpressionKind::Name, token.line, token.text};
    return {ExpressionKind::Literal, token.line, "", {}, found->second};
  }

  // Counts what is inside another, so that no template exhausts the stack.
  struct Deeper {
    explicit Deeper(Parser& parser) : depth(parser.depth_) {
      if (++depth > kDeepest)
        refuse_template(parser.next().line, "statements and expressions must not be so deep");
    }
    ~Deeper() { --depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    int& depth;
  };

  const std::vector<TemplateToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<TemplateStatement> parsed_template(const std::string& source) {
  return Parser(source).whole();
}

}  // namespace posenc::text
