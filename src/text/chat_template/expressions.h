#pragma once

#include <string>
#include <vector>

#include "text/chat_template/syntax.h"
#include "text/chat_template/tokens.h"

namespace posenc::text::jinja {

/// Reads expressions of Jinja from the pieces of a template.
class ExpressionParser {
 protected:
  using TokenKind = TemplateToken::Kind;
  using ExpressionKind = TemplateExpression::Kind;

  explicit ExpressionParser(const std::string& source) : tokens_(template_tokens(source)) {}

  const TemplateToken& next(std::size_t after = 0) const;
  bool is_symbol(const char* text) const { return next().is(TokenKind::Symbol, text); }
  bool is_name(const char* text) const { return next().is(TokenKind::Name, text); }
  bool take_symbol(const char* text);
  bool take_name(const char* text);
  [[noreturn]] void refuse_next(const std::string& rule) const;
  std::string expect(TokenKind kind, const char* text, const char* what);
  std::string expect_name(const char* what) { return expect(TokenKind::Name, nullptr, what); }

  TemplateExpression expression();
  /// One without `if`.
  TemplateExpression either();
  /// One or, with commas, a tuple of them; `conditional`: whether they may have `if`.
  TemplateExpression tuple(bool conditional, bool may_be_empty = false);
  /// `| name(...)` and others of a value; `of` has no kind for {% set name | filter %}.
  TemplateExpression filter(TemplateExpression of);

  // Counts what is inside another, so that no template exhausts the stack.
  struct Deeper {
    explicit Deeper(ExpressionParser& parser);
    ~Deeper() { --depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    int& depth;
  };

  const std::vector<TemplateToken> tokens_;
  std::size_t at_ = 0;

 private:
  TemplateExpression both();
  TemplateExpression negation();
  TemplateExpression comparison();
  TemplateExpression sum();
  TemplateExpression concatenation();
  TemplateExpression product();
  TemplateExpression power();
  TemplateExpression unary(bool with_filter = true);
  TemplateExpression postfix(TemplateExpression value);
  TemplateExpression call(TemplateExpression value, int line);
  TemplateExpression subscript(TemplateExpression value);
  TemplateExpression filters(TemplateExpression value);
  TemplateExpression test(TemplateExpression value);
  TemplateExpression primary();
  TemplateExpression list();
  TemplateExpression dict();
  TemplateExpression number();
  void add_arguments(std::vector<TemplateExpression>& parts);
  std::string comparison_operator();

  int depth_ = 0;
};

}  // namespace posenc::text::jinja
