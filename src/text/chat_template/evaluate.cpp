// ChatTemplate::render().

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "text/chat_template/chat_template.h"
#include "text/chat_template/tokens.h"

namespace posenc::text {
namespace {

using Json = nlohmann::json;
using ExpressionKind = TemplateExpression::Kind;

// Nothing is Jinja's undefined, which is false, empty, and written as nothing.
using Value = std::optional<Json>;

bool is_true(const Value& value) {
  if (!value || value->is_null()) return false;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_number()) return *value != 0;
  return value->is_string() ? !value->get_ref<const std::string&>().empty() : !value->empty();
}

// As Python compares, to which true is 1.
bool are_equal(const Value& a, const Value& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  const auto number = [](const Value& one) -> Json {
    return one->is_boolean() ? Json(one->get<bool>() ? 1 : 0) : *one;
  };
  return number(a) == number(b);
}

// As Python's str().
std::string text_of(const Value& value, int line) {
  if (!value) return "";
  if (value->is_string()) return *value;
  if (value->is_boolean()) return *value ? "True" : "False";
  if (value->is_null()) return "None";
  if (value->is_number_integer()) return value->dump();
  refuse_template(line, "a list or an object is written as a text, which posenc does not");
}

// The items of what a loop or a filter goes through.
std::vector<Json> items_of(const Value& value, int line) {
  if (!value) return {};
  if (!value->is_array()) refuse_template(line, "what is gone through must be a list");
  return {value->begin(), value->end()};
}

Value attribute(const Value& of, const std::string& name, int line) {
  if (!of) refuse_template(line, "what has the attribute " + name + " must be defined");
  if (!of->is_object() || !of->contains(name)) return std::nullopt;
  return (*of)[name];
}

// That of map(), selectattr() and rejectattr(), whose names may have dots.
Value attribute_path(Value of, const std::string& path, int line) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    of = attribute(of, path.substr(begin, end - begin), line);
    begin = end + 1;
  }
  return of;
}

Value item(const Value& of, const Value& key, int line) {
  if (!of) refuse_template(line, "what has items must be defined");
  if (key && key->is_string()) return attribute(of, *key, line);
  if (!key || !key->is_number_integer() || !of->is_array())
    refuse_template(line, "an item must be one of a list, by its number, or of an object");
  const auto count = static_cast<int64_t>(of->size());
  const int64_t given = *key, index = given < 0 ? given + count : given;
  if (index < 0 || index >= count) return std::nullopt;
  return (*of)[static_cast<std::size_t>(index)];
}

bool is_in(const Value& part, const Value& whole, int line) {
  if (!whole) return false;
  if (!whole->is_string() && !part) return false;
  if (whole->is_object()) return part->is_string() && whole->contains(part->get<std::string>());
  if (!whole->is_string()) {
    const std::vector<Json> items = items_of(whole, line);
    return std::any_of(items.begin(), items.end(),
                       [&](const Json& one) { return are_equal(one, part); });
  }
  if (!part || !part->is_string()) refuse_template(line, "what is in a text must be a text");
  return whole->get_ref<const std::string&>().find(part->get<std::string>()) != std::string::npos;
}

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t\n\r\f\v";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// What a filter is given beside its value.
struct Arguments {
  std::vector<Value> values;
  std::map<std::string, Value> named = {};

  bool are(std::size_t count, const char* name = nullptr) const {
    return values.size() == count && named.size() == (name != nullptr ? 1 : 0) &&
           (name == nullptr || named.count(name) == 1);
  }
};

[[noreturn]] void refuse_arguments(const TemplateExpression& filter) {
  refuse_template(filter.line, "these arguments of " + filter.name + " are not known to posenc");
}

std::string name_in(const TemplateExpression& filter, const Value& argument) {
  if (!argument || !argument->is_string()) refuse_arguments(filter);
  return *argument;
}

// selectattr(attribute, test, operand), or without the last two.
bool is_selected(const TemplateExpression& filter, const Json& one, const Arguments& given) {
  const Value own = attribute_path(one, name_in(filter, given.values[0]), filter.line);
  if (given.are(1)) return is_true(own);
  const std::string test = given.are(3) ? name_in(filter, given.values[1]) : "";
  if (test == "eq" || test == "equalto") return are_equal(own, given.values[2]);
  if (test == "ne") return !are_equal(own, given.values[2]);
  if (test == "in") return is_in(own, given.values[2], filter.line);
  refuse_arguments(filter);
}

Value filter_items(const TemplateExpression& filter, const std::vector<Json>& items,
                   const Arguments& given) {
  const bool is_map = filter.name == "map";
  if (is_map ? !given.are(0, "attribute") : given.values.empty() || !given.named.empty())
    refuse_arguments(filter);
  Json result = Json::array();
  for (const Json& one : items) {
    if (!is_map) {
      if (is_selected(filter, one, given) == (filter.name == "selectattr")) result.push_back(one);
      continue;
    }
    const std::string path = name_in(filter, given.named.at("attribute"));
    const Value own = attribute_path(one, path, filter.line);
    if (!own) refuse_template(filter.line, "each item must have the attribute " + path);
    result.push_back(*own);
  }
  return result;
}

Value with_default(const TemplateExpression& filter, const Value& value, const Arguments& given) {
  const bool is_named = given.are(0, "boolean") || given.are(1, "boolean");
  if (!is_named && !given.are(0) && !given.are(1) && !given.are(2)) refuse_arguments(filter);
  const bool takes_false = is_named ? is_true(given.named.at("boolean"))
                                    : given.values.size() == 2 && is_true(given.values[1]);
  if (value && (!takes_false || is_true(value))) return value;
  return given.values.empty() ? Value("") : given.values[0];
}

Value joined(const TemplateExpression& filter, const std::vector<Json>& items,
             const Arguments& given) {
  if (!given.are(0) && !given.are(1)) refuse_arguments(filter);
  const std::string between = given.are(1) ? text_of(given.values[0], filter.line) : "";
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i)
    text += (i > 0 ? between : "") + text_of(items[i], filter.line);
  return text;
}

Value filtered(const TemplateExpression& filter, const Value& value, const Arguments& given) {
  const std::string& name = filter.name;
  if (name == "default" || name == "d") return with_default(filter, value, given);
  if (name == "map" || name == "selectattr" || name == "rejectattr")
    return filter_items(filter, items_of(value, filter.line), given);
  if (name == "join") return joined(filter, items_of(value, filter.line), given);
  if (!given.are(0)) refuse_arguments(filter);
  if (name == "trim") return trimmed(text_of(value, filter.line));
  const bool is_first = name == "first", is_length = name == "length" || name == "count";
  if (!is_first && !is_length && name != "last" && name != "list")
    refuse_template(filter.line, "the filter " + io::in_quotes(name) + " is not known to posenc");
  const std::vector<Json> items = items_of(value, filter.line);
  if (is_length) return items.size();
  if (name == "list") return items;
  if (items.empty()) return std::nullopt;
  return is_first ? items.front() : items.back();
}

// Filters whose result can be gone through once, in Jinja, and those that do.
bool is_once(const TemplateExpression& filter) {
  return filter.kind == ExpressionKind::Filter &&
         (filter.name == "map" || filter.name == "selectattr" || filter.name == "rejectattr");
}
bool goes_through(const TemplateExpression& filter) {
  return is_once(filter) || filter.name == "first" || filter.name == "join" ||
         filter.name == "list";
}

class Renderer {
 public:
  explicit Renderer(const Json& names) : scopes_(1) {
    for (const auto& [name, value] : names.items()) scopes_[0][name] = value;
  }

  void run(const std::vector<TemplateStatement>& statements) {
    for (const TemplateStatement& one : statements) run(one);
  }
  std::string take() { return std::move(out_); }

 private:
  void run(const TemplateStatement& one) {
    if (one.kind == TemplateStatement::Kind::Text) {
      out_ += one.name;
      return;
    }
    const bool is_loop = one.kind == TemplateStatement::Kind::For;
    const Value value = evaluate(one.expression[0], is_loop);
    switch (one.kind) {
      case TemplateStatement::Kind::Output: out_ += text_of(value, one.line); break;
      case TemplateStatement::Kind::Set: scopes_.back()[one.name] = value; break;
      case TemplateStatement::Kind::If: run(is_true(value) ? one.body : one.otherwise); break;
      default: loop(one, items_of(value, one.line));
    }
  }

  void loop(const TemplateStatement& one, const std::vector<Json>& items) {
    for (const Json& own : items) {
      scopes_.push_back({{one.name, own}});
      run(one.body);
      scopes_.pop_back();
    }
  }

  Value named(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return found->second;
    }
    return std::nullopt;
  }

  Arguments arguments(const TemplateExpression& filter) const {
    Arguments given;
    for (auto part = filter.parts.begin() + 1; part != filter.parts.end(); ++part) {
      if (part->kind == ExpressionKind::Argument) {
        given.named[part->name] = evaluate(part->parts[0]);
      } else {
        given.values.push_back(evaluate(*part));
      }
    }
    return given;
  }

  // `once`: whether the value is gone through once.
  Value evaluate(const TemplateExpression& one, bool once = false) const {
    if (is_once(one) && !once)
      refuse_template(one.line, "after " + one.name +
                                    " there must be first, join, list or a filter of items, unless "
                                    "it is in for");
    const auto part = [&](std::size_t i) { return evaluate(one.parts[i]); };
    switch (one.kind) {
      case ExpressionKind::Literal: return one.literal;
      case ExpressionKind::Name: return named(one.name);
      case ExpressionKind::Attribute: return attribute(part(0), one.name, one.line);
      case ExpressionKind::Item: return item(part(0), part(1), one.line);
      case ExpressionKind::Not: return !is_true(part(0));
      case ExpressionKind::Equal: return are_equal(part(0), part(1));
      case ExpressionKind::In: return is_in(part(0), part(1), one.line);
      case ExpressionKind::Filter:
        return filtered(one, evaluate(one.parts[0], goes_through(one)), arguments(one));
      default: break;  // And, Or: as in Python, one of the two values
    }
    const Value left = part(0);
    return is_true(left) == (one.kind == ExpressionKind::And) ? part(1) : left;
  }

  std::vector<std::map<std::string, Value>> scopes_;
  std::string out_;
};

}  // namespace

std::string ChatTemplate::render(const Json& names) const {
  Renderer renderer(names);
  renderer.run(statements_);
  return renderer.take();
}

}  // namespace posenc::text
