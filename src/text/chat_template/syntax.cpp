#include "text/chat_template/syntax.h"

#include <utility>

#include "text/chat_template/expressions.h"

namespace posenc::text::jinja {
namespace {

using Statement = TemplateStatement;
using StatementKind = TemplateStatement::Kind;
using ExpressionKind = TemplateExpression::Kind;

class Parser : public ExpressionParser {
 public:
  explicit Parser(const std::string& source) : ExpressionParser(source) {}

  Statement whole() {
    Statement all = {StatementKind::Scope, 1};
    all.body = statements({});
    if (!next().is(TokenKind::End)) refuse_next("must not be here");
    return all;
  }

 private:
  bool is_block(const char* name) const {
    return next().is(TokenKind::BlockBegin) && next(1).is(TokenKind::Name, name);
  }

  // Those before a block with one of these names.
  std::vector<Statement> statements(const std::vector<const char*>& ends) {
    const Deeper deeper(*this);
    std::vector<Statement> all;
    while (!next().is(TokenKind::End)) {
      for (const char* end : ends)
        if (is_block(end)) return all;
      all.push_back(statement());
    }
    if (!ends.empty()) refuse_next(std::string("is where ") + ends.back() + " must be");
    return all;
  }
  std::vector<Statement> body_until(const char* end) {
    end_block();
    std::vector<Statement> body = statements({end});
    end_block(end);
    return body;
  }

  Statement statement() {
    const int line = next().line;
    if (next().is(TokenKind::Text)) return {StatementKind::Text, line, tokens_[at_++].text};
    if (next().is(TokenKind::OutputBegin)) {
      ++at_;
      Statement output = {StatementKind::Output, line};
      output.expression.push_back(tuple(true));
      expect(TokenKind::OutputEnd, nullptr, "}}");
      return output;
    }
    expect(TokenKind::BlockBegin, nullptr, "a tag");
    if (take_name("set")) return set_statement(line);
    if (take_name("for")) return for_statement(line);
    if (take_name("if")) return if_statement(line);
    if (take_name("macro")) return macro_statement(line);
    if (take_name("generation")) {
      Statement scope = {StatementKind::Scope, line};
      const LoopsAside aside(*this);
      scope.body = body_until("endgeneration");
      return scope;
    }
    if (is_name("break") || is_name("continue")) {
      if (loops_ == 0) refuse_next("must be in a loop");
      const bool is_break = tokens_[at_++].text == "break";
      end_block();
      return {is_break ? StatementKind::Break : StatementKind::Continue, line};
    }
    refuse_next(
        "is a statement that posenc does not know: it has break, continue, for, "
        "generation, if, macro and set");
  }

  void end_block() { expect(TokenKind::BlockEnd, nullptr, "%}"); }
  void end_block(const char* name) {
    expect(TokenKind::BlockBegin, nullptr, name);
    expect(TokenKind::Name, name, name);
    end_block();
  }

  // A name that is given a value, which must be no constant.
  std::string target() {
    for (const char* constant : {"true", "True", "false", "False", "none", "None", "loop"})
      if (is_name(constant)) refuse_next("must not be given a value");
    return expect_name("a name");
  }
  void add_targets(Statement& statement) {
    const bool has_bracket = take_symbol("(");
    do {
      if (!next().is(TokenKind::Name) || (is_name("in") && statement.is_tuple)) break;
      statement.names.push_back(target());
      statement.is_tuple = statement.is_tuple || is_symbol(",");
    } while (take_symbol(","));
    if (has_bracket) expect(TokenKind::Symbol, ")", ")");
    if (statement.names.empty()) refuse_next("is where a name must be");
  }

  Statement set_statement(int line) {
    Statement set = {StatementKind::Set, line};
    add_targets(set);
    if (!set.is_tuple && take_symbol(".")) set.attribute = expect_name("the name of an attribute");
    if (take_symbol("=")) {
      set.expression.push_back(tuple(true));
      end_block();
      return set;
    }
    set.kind = StatementKind::SetBlock;
    if (set.is_tuple || !set.attribute.empty()) refuse_next("is where = must be");
    if (is_symbol("|")) {
      TemplateExpression value = {ExpressionKind::Name, line};  // what the body writes
      while (is_symbol("|")) value = filter(std::move(value));
      set.expression.push_back(std::move(value));
    }
    const LoopsAside aside(*this);
    set.body = body_until("endset");
    return set;
  }

  Statement for_statement(int line) {
    Statement loop = {StatementKind::For, line};
    add_targets(loop);
    expect(TokenKind::Name, "in", "in");
    loop.expression.push_back(tuple(false));
    if (take_name("if")) loop.expression.push_back(expression());
    end_block();
    ++loops_;
    loop.body = statements({"else", "endfor"});
    --loops_;
    if (is_block("else")) {
      at_ += 2;
      end_block();
      loop.otherwise = statements({"endfor"});
    }
    end_block("endfor");
    return loop;
  }

  Statement if_statement(int line) {
    const Deeper deeper(*this);
    Statement branch = {StatementKind::If, line};
    branch.expression.push_back(tuple(false));
    end_block();
    branch.body = statements({"elif", "else", "endif"});
    if (is_block("elif")) {
      const int other = next().line;
      at_ += 2;
      branch.otherwise.push_back(if_statement(other));
      branch.otherwise.back().is_elif = true;
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

  Statement macro_statement(int line) {
    Statement macro = {StatementKind::Macro, line, target()};
    expect(TokenKind::Symbol, "(", "(");
    while (!take_symbol(")")) {
      for (const char* special : {"caller", "kwargs", "varargs"})
        if (is_name(special)) refuse_next("is the name of a parameter, which posenc does not know");
      macro.names.push_back(target());
      if (take_symbol("=")) {
        macro.expression.push_back(expression());
      } else if (!macro.expression.empty()) {
        refuse_next("is where a default must be");
      }
      if (!is_symbol(")")) expect(TokenKind::Symbol, ",", "a comma or )");
    }
    const LoopsAside aside(*this);
    macro.body = body_until("endmacro");
    return macro;
  }

  // break and continue do not leave a body that is rendered apart.
  struct LoopsAside {
    explicit LoopsAside(Parser& parser) : loops(parser.loops_), before(parser.loops_) { loops = 0; }
    ~LoopsAside() { loops = before; }
    LoopsAside(const LoopsAside&) = delete;
    LoopsAside& operator=(const LoopsAside&) = delete;
    int& loops;
    const int before;
  };

  int loops_ = 0;
};

}  // namespace

TemplateStatement parsed_template(const std::string& source) {
  TemplateStatement whole = Parser(source).whole();
  find_hidden(whole);
  return whole;
}

}  // namespace posenc::text::jinja
