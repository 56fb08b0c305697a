// posenc-budget: the grammar of expressions, a function for each level

#include "text/chat_template/expressions.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/platform/number.h"
#include "base/text.h"

namespace posenc::text::jinja {
namespace {

using ExpressionKind = TemplateExpression::Kind;

constexpr int kDeepestSyntax = 100;

TemplateExpression made(ExpressionKind kind, int line, std::vector<TemplateExpression> parts,
                        std::string name = {}) {
  return {kind, line, std::move(name), std::move(parts)};
}

TemplateExpression literal(int line, TemplateValue value) {
  return {ExpressionKind::Literal, line, "", {}, std::move(value)};
}

// Of two parts.
TemplateExpression made_of(ExpressionKind kind, int line, TemplateExpression left,
                           TemplateExpression right, std::string name = {}) {
  std::vector<TemplateExpression> parts;
  parts.reserve(2);
  parts.push_back(std::move(left));
  parts.push_back(std::move(right));
  return made(kind, line, std::move(parts), std::move(name));
}

}  // namespace

ExpressionParser::Deeper::Deeper(ExpressionParser& parser) : depth(parser.depth_) {
  if (++depth > kDeepestSyntax)
    refuse_template(parser.next().line, "statements and expressions must not be so deep");
}

const TemplateToken& ExpressionParser::next(std::size_t after) const {
  return tokens_[std::min(at_ + after, tokens_.size() - 1)];
}

bool ExpressionParser::take_symbol(const char* text) {
  if (!is_symbol(text)) return false;
  ++at_;
  return true;
}

bool ExpressionParser::take_name(const char* text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}

void ExpressionParser::refuse_next(const std::string& rule) const {
  refuse_template(next().line, (next().text.empty() ? "the end of a tag or of the template"
                                                    : io::in_quotes(next().text)) +
                                   " " + rule);
}

std::string ExpressionParser::expect(TokenKind kind, const char* text, const char* what) {
  if (!next().is(kind, text)) refuse_next(std::string("is where ") + what + " must be");
  return tokens_[at_++].text;
}

TemplateExpression ExpressionParser::tuple(bool conditional, bool may_be_empty) {
  const int line = next().line;
  std::vector<TemplateExpression> parts;
  bool is_tuple = false;
  while (!next().is(TokenKind::BlockEnd) && !next().is(TokenKind::OutputEnd) && !is_symbol(")")) {
    parts.push_back(conditional ? expression() : either());
    if (!take_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && parts.size() == 1) return std::move(parts.front());
  if (parts.empty() && !may_be_empty) refuse_next("is where a value must be");
  return made(ExpressionKind::Tuple, line, std::move(parts));
}

TemplateExpression ExpressionParser::expression() {
  const Deeper deeper(*this);
  TemplateExpression value = either();
  while (is_name("if")) {
    const int line = tokens_[at_++].line;
    TemplateExpression chosen =
        made_of(ExpressionKind::Conditional, line, either(), std::move(value));
    if (take_name("else")) chosen.parts.push_back(expression());
    value = std::move(chosen);
  }
  return value;
}

TemplateExpression ExpressionParser::either() {
  TemplateExpression left = both();
  while (is_name("or")) {
    const int line = tokens_[at_++].line;
    left = made_of(ExpressionKind::Or, line, std::move(left), both());
  }
  return left;
}

TemplateExpression ExpressionParser::both() {
  TemplateExpression left = negation();
  while (is_name("and")) {
    const int line = tokens_[at_++].line;
    left = made_of(ExpressionKind::And, line, std::move(left), negation());
  }
  return left;
}

TemplateExpression ExpressionParser::negation() {
  const Deeper deeper(*this);
  const int line = next().line;
  if (!take_name("not")) return comparison();
  return made(ExpressionKind::Not, line, {negation()});
}

// Takes the next one, or returns nothing.
std::string ExpressionParser::comparison_operator() {
  for (const char* symbol : {"==", "!=", "<", ">", "<=", ">="})
    if (take_symbol(symbol)) return symbol;
  if (take_name("in")) return "in";
  if (!is_name("not") || !next(1).is(TokenKind::Name, "in")) return "";
  at_ += 2;
  return "not in";
}

TemplateExpression ExpressionParser::comparison() {
  const int line = next().line;
  std::vector<TemplateExpression> parts;
  parts.push_back(sum());
  for (std::string name = comparison_operator(); !name.empty(); name = comparison_operator())
    parts.push_back(made(ExpressionKind::Operand, line, {sum()}, name));
  if (parts.size() == 1) return std::move(parts.front());
  return made(ExpressionKind::Compare, line, std::move(parts));
}

TemplateExpression ExpressionParser::sum() {
  TemplateExpression left = concatenation();
  while (is_symbol("+") || is_symbol("-")) {
    const TemplateToken& sign = tokens_[at_++];
    left = made_of(ExpressionKind::Binary, sign.line, std::move(left), concatenation(), sign.text);
  }
  return left;
}

TemplateExpression ExpressionParser::concatenation() {
  TemplateExpression left = product();
  while (is_symbol("~")) {
    const int line = tokens_[at_++].line;
    left = made_of(ExpressionKind::Concat, line, std::move(left), product());
  }
  return left;
}

TemplateExpression ExpressionParser::product() {
  TemplateExpression left = power();
  while (is_symbol("*") || is_symbol("/") || is_symbol("//") || is_symbol("%")) {
    const TemplateToken& sign = tokens_[at_++];
    left = made_of(ExpressionKind::Binary, sign.line, std::move(left), power(), sign.text);
  }
  return left;
}

TemplateExpression ExpressionParser::power() {
  TemplateExpression left = unary();
  while (is_symbol("**")) {
    const int line = tokens_[at_++].line;
    left = made_of(ExpressionKind::Binary, line, std::move(left), unary(), "**");
  }
  return left;
}

TemplateExpression ExpressionParser::unary(bool with_filter) {
  const Deeper deeper(*this);
  const int line = next().line;
  TemplateExpression value;
  if (take_symbol("-")) {
    value = made(ExpressionKind::Negative, line, {unary(false)});
  } else if (take_symbol("+")) {
    value = made(ExpressionKind::Positive, line, {unary(false)});
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filter ? filters(std::move(value)) : value;
}

// After the parenthesis.
TemplateExpression ExpressionParser::call(TemplateExpression value, int line) {
  std::vector<TemplateExpression> parts = {std::move(value)};
  add_arguments(parts);
  return made(ExpressionKind::Call, line, std::move(parts));
}

TemplateExpression ExpressionParser::postfix(TemplateExpression value) {
  while (true) {
    const int line = next().line;
    if (take_symbol(".")) {
      if (next().is(TokenKind::Integer)) {
        value = made_of(ExpressionKind::Item, line, std::move(value), number());
      } else {
        const std::string name = expect_name("the name of an attribute");
        value = made(ExpressionKind::Attribute, line, {std::move(value)}, name);
      }
    } else if (take_symbol("[")) {
      value = subscript(std::move(value));
    } else if (take_symbol("(")) {
      value = call(std::move(value), line);
    } else {
      return value;
    }
  }
}

// After the bracket.
TemplateExpression ExpressionParser::subscript(TemplateExpression value) {
  const int line = next().line;
  const auto bound_here = [&] {
    return is_symbol(":") || is_symbol("]") ? literal(line, {nullptr}) : expression();
  };
  const bool has_start = !is_symbol(":");
  std::vector<TemplateExpression> parts = {std::move(value)};
  if (!is_symbol("]")) parts.push_back(has_start ? expression() : literal(line, {nullptr}));
  if (has_start && (is_symbol(",") || parts.size() == 1)) {  // of a tuple
    std::vector<TemplateExpression> items(parts.begin() + 1, parts.end());
    while (take_symbol(",")) items.push_back(expression());
    parts.erase(parts.begin() + 1, parts.end());
    parts.push_back(made(ExpressionKind::Tuple, line, std::move(items)));
  }
  if (has_start && take_symbol("]")) return made(ExpressionKind::Item, line, std::move(parts));
  expect(TokenKind::Symbol, ":", "a colon or ]");
  parts.push_back(bound_here());
  parts.push_back(take_symbol(":") ? bound_here() : literal(line, {nullptr}));
  expect(TokenKind::Symbol, "]", "]");
  return made(ExpressionKind::Slice, line, std::move(parts));
}

TemplateExpression ExpressionParser::filters(TemplateExpression value) {
  while (true) {
    const int line = next().line;
    if (is_symbol("|")) {
      value = filter(std::move(value));
    } else if (take_name("is")) {
      value = test(std::move(value));
    } else if (take_symbol("(")) {
      value = call(std::move(value), line);
    } else {
      return value;
    }
  }
}

TemplateExpression ExpressionParser::filter(TemplateExpression of) {
  const int line = next().line;
  expect(TokenKind::Symbol, "|", "|");
  const std::string name = expect_name("the name of a filter");
  std::vector<TemplateExpression> parts = {std::move(of)};
  if (take_symbol("(")) add_arguments(parts);
  return made(ExpressionKind::Filter, line, std::move(parts), name);
}

TemplateExpression ExpressionParser::test(TemplateExpression value) {
  const int line = next().line;
  const bool is_negated = take_name("not");
  const std::string name = expect_name("the name of a test");
  std::vector<TemplateExpression> parts = {std::move(value)};
  const bool has_operand =
      next().is(TokenKind::String) || next().is(TokenKind::Integer) ||
      next().is(TokenKind::Float) || is_symbol("[") || is_symbol("{") ||
      (next().is(TokenKind::Name) && !is_name("else") && !is_name("or") && !is_name("and"));
  if (take_symbol("(")) {
    add_arguments(parts);
  } else if (is_name("is")) {
    refuse_next("must not follow a test");
  } else if (has_operand) {
    parts.push_back(postfix(primary()));
  }
  TemplateExpression result = made(ExpressionKind::Test, line, std::move(parts), name);
  return is_negated ? made(ExpressionKind::Not, line, {std::move(result)}) : result;
}

// Up to the closing bracket, which is taken.
void ExpressionParser::add_arguments(std::vector<TemplateExpression>& parts) {
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

TemplateExpression ExpressionParser::primary() {
  static const std::map<std::string, TemplateValue> kConstants = {
      {"true", {true}},   {"True", {true}},    {"false", {false}},
      {"False", {false}}, {"none", {nullptr}}, {"None", {nullptr}}};
  const int line = next().line;
  if (next().is(TokenKind::String)) {
    std::string text;
    while (next().is(TokenKind::String)) text += tokens_[at_++].text;
    return literal(line, text_value(text));
  }
  if (next().is(TokenKind::Integer) || next().is(TokenKind::Float)) return number();
  if (next().is(TokenKind::Name)) {
    const std::string name = tokens_[at_++].text;
    const auto found = kConstants.find(name);
    if (found != kConstants.end()) return literal(line, found->second);
    return made(ExpressionKind::Name, line, {}, name);
  }
  if (take_symbol("(")) {
    TemplateExpression inner = tuple(true, true);
    expect(TokenKind::Symbol, ")", ")");
    return inner;
  }
  if (take_symbol("[")) return list();
  if (take_symbol("{")) return dict();
  refuse_next("is where a value must be");
}

TemplateExpression ExpressionParser::list() {
  const int line = next().line;
  std::vector<TemplateExpression> parts;
  while (!take_symbol("]")) {
    parts.push_back(expression());
    if (!is_symbol("]")) expect(TokenKind::Symbol, ",", "a comma or ]");
  }
  return made(ExpressionKind::List, line, std::move(parts));
}

TemplateExpression ExpressionParser::dict() {
  const int line = next().line;
  std::vector<TemplateExpression> parts;
  while (!take_symbol("}")) {
    parts.push_back(expression());
    expect(TokenKind::Symbol, ":", ":");
    parts.push_back(expression());
    if (!is_symbol("}")) expect(TokenKind::Symbol, ",", "a comma or }");
  }
  return made(ExpressionKind::Dict, line, std::move(parts));
}

TemplateExpression ExpressionParser::number() {
  const TemplateToken& token = tokens_[at_++];
  if (token.is(TokenKind::Integer)) {
    const auto integer = platform::parse_number<int64_t>(token.text);
    if (!integer) refuse_template(token.line, io::in_quotes(token.text) + " is beyond 64 bits");
    return literal(token.line, {*integer});
  }
  const auto real = platform::parse_number<double>(token.text);
  if (!real) refuse_template(token.line, io::in_quotes(token.text) + " is no float");
  return literal(token.line, {*real});
}

}  // namespace posenc::text::jinja
