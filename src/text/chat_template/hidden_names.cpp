// find_hidden().

#include <map>
#include <set>

#include "text/chat_template/syntax.h"

namespace posenc::text::jinja {
namespace {

using Statement = TemplateStatement;
using StatementKind = TemplateStatement::Kind;
using ExpressionKind = TemplateExpression::Kind;

// The names of a frame, by the rules of jinja2.idtracking: one that a frame gives a value before
// it reads it, and that no outer frame has, is undefined at the beginning. One that is read first,
// or that only some branches give a value, is looked for among what a template is rendered with.
class Frame {
 public:
  explicit Frame(const Frame* parent) : parent_(parent) {}

  void declare(const std::string& name) { known_[name] = false; }
  void load(const TemplateExpression& one) {
    if (one.kind == ExpressionKind::Name && !is_known(one.name)) known_[one.name] = false;
    for (const TemplateExpression& part : one.parts) load(part);
  }
  void visit(const std::vector<Statement>& body) {
    for (const Statement& one : body) visit(one);
  }
  std::vector<std::string> hidden() const {
    std::vector<std::string> names;
    for (const auto& [name, is_hidden] : known_)
      if (is_hidden) names.push_back(name);
    return names;
  }

 private:
  bool is_known(const std::string& name) const {
    return known_.count(name) == 1 || (parent_ != nullptr && parent_->is_known(name));
  }
  void store(const std::string& name) {
    stored_.insert(name);
    if (known_.count(name) == 0) known_[name] = parent_ == nullptr || !parent_->is_known(name);
  }

  void visit(const Statement& one) {
    switch (one.kind) {
      case StatementKind::Scope: return;
      case StatementKind::Macro: return store(one.name);
      case StatementKind::For: return load(one.expression[0]);
      case StatementKind::SetBlock: return store(one.names[0]);
      default: break;
    }
    for (const TemplateExpression& expression : one.expression) load(expression);
    if (one.kind == StatementKind::If) branches(one);
    if (one.kind != StatementKind::Set) return;
    if (!one.attribute.empty()) return load({ExpressionKind::Name, one.line, one.names[0]});
    for (const std::string& name : one.names) store(name);
  }

  // Those of if, of all elif and of else, each from what is known before.
  void branches(const Statement& one) {
    Frame body = *this, elifs = *this, otherwise = *this;
    body.visit(one.body);
    const Statement* last = &one;
    while (last->otherwise.size() == 1 && last->otherwise[0].is_elif) {
      last = &last->otherwise[0];
      elifs.load(last->expression[0]);
      Frame own = elifs;
      own.visit(last->body);
      elifs.merge({&own});
    }
    otherwise.visit(last->otherwise);
    merge({&body, &elifs, &otherwise});
  }
  void merge(const std::vector<const Frame*>& branches) {
    const std::set<std::string> before = stored_;
    for (const Frame* branch : branches) {
      for (const auto& [name, is_hidden] : branch->known_) known_[name] = is_hidden;
      stored_.insert(branch->stored_.begin(), branch->stored_.end());
    }
    for (const std::string& name : stored_)
      if (before.count(name) == 0) known_[name] = false;
  }

  const Frame* parent_;
  std::map<std::string, bool> known_ = {};  // to whether it is hidden
  std::set<std::string> stored_ = {};
};

void find_in(std::vector<Statement>& body, const Frame& frame);

// The body of a statement that has a frame of its own.
std::vector<std::string> find_apart(std::vector<Statement>& body,
                                    const std::vector<std::string>& own,
                                    const std::vector<TemplateExpression>& defaults,
                                    const Frame& outer) {
  Frame frame(&outer);
  for (const std::string& name : own) frame.declare(name);
  for (const TemplateExpression& one : defaults) frame.load(one);
  frame.visit(body);
  find_in(body, frame);
  return frame.hidden();
}

void find_in(std::vector<Statement>& body, const Frame& frame) {
  for (Statement& one : body) {
    switch (one.kind) {
      case StatementKind::If:
        find_in(one.body, frame);
        find_in(one.otherwise, frame);
        break;
      case StatementKind::For: {
        std::vector<std::string> own = one.names;
        own.emplace_back("loop");
        one.hidden = find_apart(one.body, own, {}, frame);
        one.hidden_otherwise = find_apart(one.otherwise, {}, {}, frame);
        break;
      }
      case StatementKind::Macro:
        one.hidden = find_apart(one.body, one.names, one.expression, frame);
        break;
      case StatementKind::SetBlock:
      case StatementKind::Scope: one.hidden = find_apart(one.body, {}, {}, frame); break;
      default: break;
    }
  }
}

}  // namespace

void find_hidden(TemplateStatement& whole) {
  Frame root(nullptr);
  root.visit(whole.body);
  find_in(whole.body, root);
  whole.hidden = root.hidden();
}

}  // namespace posenc::text::jinja
