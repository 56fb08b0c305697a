// TemplateProgram::render().
// posenc-budget: one visitor of statements and expressions, which call each other

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "text/chat_template/filters.h"
#include "text/chat_template/limits.h"
#include "text/chat_template/program.h"
#include "text/chat_template/python_text.h"
#include "text/chat_template/tokens.h"

namespace posenc::text::jinja {
namespace {

using Value = TemplateValue;
using Statement = TemplateStatement;
using Expression = TemplateExpression;
using ExpressionKind = TemplateExpression::Kind;

constexpr int kDeepest = 1000;  // of expressions and macros inside each other

// The values of names in a frame, around which there is another.
struct Scope {
  std::shared_ptr<const Scope> outer;
  std::map<std::string, Value> names = {};
};
using ScopeOf = std::shared_ptr<Scope>;

Value range(const TemplateArguments& given) {
  const auto bounds = bound(given, "range", {"start", "stop", "step"});
  if (!bounds[0]) refuse("range must have a number");
  const auto number = [&](std::size_t i, int64_t otherwise) {
    return bounds[i] ? integer_in(*bounds[i], "a bound of a range") : otherwise;
  };
  const int64_t start = bounds[1] ? number(0, 0) : 0,
                stop = bounds[1] ? number(1, 0) : number(0, 0), step = number(2, 1);
  constexpr int64_t kMost = 100'000, kFar = int64_t{1} << 53;  // the first as in Jinja
  if (std::max({start, stop, step}) > kFar || std::min({start, stop, step}) < -kFar)
    refuse("the bounds of a range must be within 2^53");
  if (step == 0) refuse("the step of a range must not be 0");
  TemplateValues items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    items.push_back({i});
    if (std::ssize(items) > kMost) refuse("a range must have at most 100000 numbers");
  }
  return list_value(std::move(items), Sequence::Kind::Range);
}

// namespace() and dict(): named values, and those of a dict.
KeyedValues keyed_values(const TemplateArguments& given, const char* name) {
  KeyedValues values;
  for (const Value& one : given.values) {
    if (one.object<Dict>() == nullptr || given.values.size() > 1)
      refuse(std::string(name) + " must have named values or a dict");
    values = one.object<Dict>()->items;
  }
  for (const auto& [key, one] : given.named) values.emplace_back(text_value(key), one);
  return values;
}

[[noreturn]] Value raise_exception(const TemplateArguments& given) {
  const auto message = bound(given, "raise_exception", {"message"});
  refuse("the template raises: " + (message[0] ? text_of(*message[0]) : ""));
}

class Renderer {
 public:
  Renderer(const NamedValues& names,
           const std::function<std::string(const std::string&)>& strftime_now)
      : globals_(std::make_shared<Scope>()) {
    const auto add = [&](const char* name, std::function<Value(const TemplateArguments&)> call) {
      globals_->names[name] = function_value(name, std::move(call));
    };
    add("range", range);
    add("namespace", [this](const TemplateArguments& given) -> Value {
      spaces_.push_back(std::make_shared<Namespace>());
      for (const auto& [key, value] : keyed_values(given, "namespace")) {
        const std::string& name = text_in(key, "a name of a namespace");
        check_name(name);
        spaces_.back()->names.set(name, value);
      }
      return {spaces_.back()};
    });
    add("raise_exception", raise_exception);
    add("dict", [](const auto& given) { return keyed_value(keyed_values(given, "dict")); });
    add("strftime_now", [strftime_now](const TemplateArguments& given) {
      const auto format = bound(given, "strftime_now", {"format"});
      if (!format[0]) refuse("strftime_now must have a format");
      return text_value(strftime_now(text_in(*format[0], "a format")));
    });
    for (const char* name : {"lipsum", "cycler", "joiner"})
      add(name, [name](const TemplateArguments&) -> Value {
        refuse(std::string("the function ") + name + " is not known to posenc");
      });
    for (const auto& [name, value] : names) globals_->names[name] = value;
  }

  ~Renderer() {
    for (const auto& space : spaces_) space->names.items.clear();  // which may hold each other
  }
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  std::string whole(const Statement& of) {
    try {
      run(of.body, frame(globals_, of.hidden));
    } catch (const TemplateRefusal& error) {
      refuse_template(line_, error.what());
    }
    return std::move(out_);
  }

 private:
  enum class Flow { Next, Break, Continue };

  struct Deeper {
    explicit Deeper(int& counted) : depth(counted) {
      if (++depth > kDeepest) refuse("expressions and macros must not be so deep");
    }
    ~Deeper() { --depth; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    int& depth;
  };

  static ScopeOf frame(std::shared_ptr<const Scope> outer, const std::vector<std::string>& hidden) {
    auto made = std::make_shared<Scope>(Scope{std::move(outer)});
    for (const std::string& name : hidden) made->names[name] = undefined(io::in_quotes(name));
    return made;
  }
  void write(const std::string& text) {
    spend(text.size());
    out_ += text;
  }

  // What a body writes.
  std::string written(const std::vector<Statement>& body, const ScopeOf& scope) {
    std::string before = std::exchange(out_, "");
    run(body, scope);
    return std::exchange(out_, std::move(before));
  }

  Flow run(const std::vector<Statement>& statements, const ScopeOf& scope) {
    const Deeper deeper(depth_);
    for (const Statement& one : statements) {
      const Flow flow = run(one, scope);
      if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
  }

  Flow run(const Statement& one, const ScopeOf& scope) {
    using Kind = Statement::Kind;
    line_ = one.line;
    spend(1);
    switch (one.kind) {
      case Kind::Text: write(one.name); break;
      case Kind::Output: write(text_of(evaluate(one.expression[0], scope))); break;
      case Kind::Set: assign(one, evaluate(one.expression[0], scope), scope); break;
      case Kind::SetBlock: set_block(one, scope); break;
      case Kind::For: return loop(one, scope);
      case Kind::If:
        return run(is_true(evaluate(one.expression[0], scope)) ? one.body : one.otherwise, scope);
      case Kind::Macro: scope->names[one.name] = macro(one, scope); break;
      case Kind::Scope: run(one.body, frame(scope, one.hidden)); break;
      case Kind::Break: return Flow::Break;
      case Kind::Continue: return Flow::Continue;
    }
    return Flow::Next;
  }

  static void unpack(const Statement& one, const Value& value, Scope& scope) {
    if (!one.is_tuple) {
      scope.names[one.names[0]] = value;
      return;
    }
    if (value.is_undefined()) refuse("the value of several names must be defined");
    TemplateValues all = all_of(value);
    if (all.size() != one.names.size())
      refuse("there must be a value for each of " + std::to_string(one.names.size()) +
             " names. Got " + std::to_string(all.size()));
    for (std::size_t i = 0; i < all.size(); ++i) scope.names[one.names[i]] = std::move(all[i]);
  }

  static void check_name(const std::string& name) {
    if (name.starts_with("_")) refuse("a namespace must not have the name " + name);
  }
  void assign(const Statement& one, const Value& value, const ScopeOf& scope) const {
    if (one.attribute.empty()) return unpack(one, value, *scope);
    const Value of = named(one.names[0], *scope);
    const auto* const space = std::get_if<std::shared_ptr<Namespace>>(&of.data);
    if (space == nullptr)
      refuse(one.names[0] + " must be a namespace, to set its " + one.attribute);
    check_name(one.attribute);
    (*space)->names.set(one.attribute, value);
  }

  void set_block(const Statement& one, const ScopeOf& scope) {
    Value value = text_value(written(one.body, frame(scope, one.hidden)));
    if (!one.expression.empty()) {
      const auto blocked = std::make_shared<Scope>(Scope{scope});
      blocked->names[""] = std::move(value);  // a name that none in a template has
      value = evaluate(one.expression[0], blocked);
    }
    scope->names[one.names[0]] = std::move(value);
  }

  Flow loop(const Statement& one, const ScopeOf& scope) {
    TemplateValues items;
    for (Value& item : all_of(evaluate(one.expression[0], scope))) {
      if (one.expression.size() > 1) {
        const auto own = frame(scope, {});
        unpack(one, item, *own);
        if (!is_true(evaluate(one.expression[1], own))) continue;
      }
      items.push_back(std::move(item));
    }
    const int depth = depth_around(depth_of(items));
    const auto all = std::make_shared<const TemplateValues>(std::move(items));
    bool has_finished = false;  // as in Jinja: break and continue do not finish a body
    for (std::size_t i = 0; i < all->size(); ++i) {
      spend(1);
      const auto own = frame(scope, one.hidden);
      unpack(one, (*all)[i], *own);
      own->names["loop"] = {std::make_shared<const Loop>(Loop{all, i, depth})};
      const Flow flow = run(one.body, own);
      has_finished = has_finished || flow == Flow::Next;
      if (flow == Flow::Break) break;
    }
    if (has_finished) return Flow::Next;
    return run(one.otherwise, frame(scope, one.hidden_otherwise));
  }

  Value macro(const Statement& one, const std::shared_ptr<const Scope>& scope) {
    // Held weakly: the scope holds the macro.
    return function_value(
        one.name, [this, &one, held = std::weak_ptr(scope)](const TemplateArguments& given) {
          const auto outer = held.lock();
          if (!outer) refuse("the macro " + one.name + " is called outside of where it is defined");
          const std::vector<const char*> names = pointers(one.names);
          const auto values = bound(given, one.name, names);
          const auto own = frame(outer, one.hidden);
          const std::size_t required = one.names.size() - one.expression.size();
          for (std::size_t i = 0; i < values.size(); ++i) {
            own->names[one.names[i]] = values[i]      ? *values[i]
                                       : i < required ? undefined("the parameter " + one.names[i])
                                                      : evaluate(one.expression[i - required], own);
          }
          return text_value(written(one.body, own));
        });
  }
  static std::vector<const char*> pointers(const std::vector<std::string>& names) {
    std::vector<const char*> all;
    for (const std::string& name : names) all.push_back(name.c_str());
    return all;
  }

  static Value named(const std::string& name, const Scope& scope) {
    for (const Scope* at = &scope; at != nullptr; at = at->outer.get()) {
      const auto found = at->names.find(name);
      if (found != at->names.end()) return found->second;
    }
    return undefined(io::in_quotes(name));
  }

  TemplateArguments arguments(const Expression& call, const ScopeOf& scope) {
    TemplateArguments given;
    for (auto part = call.parts.begin() + 1; part != call.parts.end(); ++part) {
      if (part->kind == ExpressionKind::Argument) {
        given.named.emplace_back(part->name, evaluate(part->parts[0], scope));
      } else {
        given.values.push_back(evaluate(*part, scope));
      }
    }
    return given;
  }

  Value call(const Expression& one, const ScopeOf& scope) {
    const Value callee = evaluate(one.parts[0], scope);
    const TemplateArguments given = arguments(one, scope);
    line_ = one.line;
    if (callee.is_undefined())
      refuse("what is called must be defined. Got " + callee.get<Undefined>()->what);
    if (callee.object<Function>() == nullptr)
      refuse("what is called must be a function. Got " + type_of(callee));
    return callee.object<Function>()->call(given);
  }

  bool compare(const Expression& one, const ScopeOf& scope) {
    Value left = evaluate(one.parts[0], scope);
    for (auto operand = one.parts.begin() + 1; operand != one.parts.end(); ++operand) {
      Value right = evaluate(operand->parts[0], scope);
      line_ = one.line;
      if (!holds(operand->name, left, right)) return false;
      left = std::move(right);
    }
    return true;
  }
  static bool holds(const std::string& name, const Value& a, const Value& b) {
    if (name == "==") return are_equal(a, b);
    if (name == "!=") return !are_equal(a, b);
    if (name == "in") return is_in(a, b);
    if (name == "not in") return !is_in(a, b);
    if (name == "<") return is_less(a, b);
    if (name == ">") return is_less(b, a);
    return name == "<=" ? is_less(a, b) || are_equal(a, b) : is_less(b, a) || are_equal(a, b);
  }

  Value dict(const Expression& one, const ScopeOf& scope) {
    KeyedValues items;
    for (std::size_t i = 0; i < one.parts.size(); i += 2) {
      Value key = evaluate(one.parts[i], scope);
      items.emplace_back(std::move(key), evaluate(one.parts[i + 1], scope));
    }
    return keyed_value(std::move(items));
  }

  Value evaluate(const Expression& one, const ScopeOf& scope) {
    spend(1);
    const Deeper deeper(depth_);
    const Value value = computed(one, scope);
    line_ = one.line;
    if (value.text() != nullptr) spend_text(value.text()->size());
    return value;
  }

  Value computed(const Expression& one, const ScopeOf& scope) {
    switch (one.kind) {
      case ExpressionKind::Literal: return one.literal;
      case ExpressionKind::Name: return named(one.name, *scope);
      case ExpressionKind::List: return list_value(parts_of(one, scope));
      case ExpressionKind::Tuple: return list_value(parts_of(one, scope), Sequence::Kind::Tuple);
      case ExpressionKind::Dict: return dict(one, scope);
      case ExpressionKind::Call: return call(one, scope);
      case ExpressionKind::Compare: return {compare(one, scope)};
      case ExpressionKind::Filter:
      case ExpressionKind::Test: return applied(one, scope);
      default: break;
    }
    const auto part = [&](std::size_t i) { return evaluate(one.parts[i], scope); };
    const Value first = part(0);
    line_ = one.line;
    switch (one.kind) {
      case ExpressionKind::Attribute: return attribute_of(first, one.name);
      case ExpressionKind::Item: return item_of(first, part(1));
      case ExpressionKind::Slice: return slice_of(first, part(1), part(2), part(3));
      case ExpressionKind::Not: return {!is_true(first)};
      case ExpressionKind::And: return is_true(first) ? part(1) : first;
      case ExpressionKind::Or: return is_true(first) ? first : part(1);
      case ExpressionKind::Binary: return binary(one.name, first, part(1));
      case ExpressionKind::Concat: return text_value(text_of(first) + text_of(part(1)));
      case ExpressionKind::Negative: return negative(first);
      case ExpressionKind::Positive: return negative(negative(first));
      default: break;  // Conditional
    }
    if (is_true(first)) return part(1);
    return one.parts.size() > 2 ? part(2) : undefined("if without else");
  }

  TemplateValues parts_of(const Expression& one, const ScopeOf& scope) {
    TemplateValues values;
    for (const Expression& part : one.parts) values.push_back(evaluate(part, scope));
    return values;
  }

  Value applied(const Expression& one, const ScopeOf& scope) {
    const Value value = evaluate(one.parts[0], scope);
    const TemplateArguments given = arguments(one, scope);
    line_ = one.line;
    if (one.kind == ExpressionKind::Test) return {is_test_true(one.name, value, given)};
    return filtered(one.name, value, given);
  }

  const ScopeOf globals_;
  std::vector<std::shared_ptr<Namespace>> spaces_;
  std::string out_;
  int line_ = 1, depth_ = 0;
};

}  // namespace

std::string TemplateProgram::render(
    const NamedValues& names,
    const std::function<std::string(const std::string&)>& strftime_now) const {
  const RenderBudget budget(names);
  return Renderer(names, strftime_now).whole(whole_);
}

}  // namespace posenc::text::jinja
