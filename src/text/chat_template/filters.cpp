// posenc-budget: all filters, and their table

#include "text/chat_template/filters.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/platform/number.h"
#include "base/text.h"
#include "text/chat_template/limits.h"
#include "text/chat_template/python_text.h"

namespace posenc::text::jinja {
namespace {

using Value = TemplateValue;
using Given = std::vector<std::optional<Value>>;

// `depth`: of what it holds.
std::shared_ptr<Stream> generator(std::function<std::optional<Value>()> next, int depth = 0) {
  return std::make_shared<Stream>(Stream{std::move(next), depth});
}

bool is_given(const std::optional<Value>& one) { return one && !one->is_none(); }
bool is_flag(const std::optional<Value>& one) { return one && is_true(*one); }
Value changed(const std::optional<std::string>& text) {
  if (!text) refuse("the case of letters beyond ASCII is changed, which posenc does not");
  return text_value(*text);
}

// ---- items ----

// The attribute of map(), sort() and others: names with dots, or numbers.
Value attribute_path(Value of, const Value& path, const std::optional<Value>& otherwise = {}) {
  if (as_integer(path)) {
    of = item_of(of, path);
    return of.is_undefined() && is_given(otherwise) ? *otherwise : of;
  }
  for (const std::string& name : split(text_in(path, "an attribute"), ".", -1)) {
    const auto number = platform::parse_number<int64_t>(name);
    of = item_of(of, number ? Value{*number} : text_value(name));
    if (of.is_undefined() && is_given(otherwise)) of = *otherwise;
  }
  return of;
}

std::shared_ptr<Stream> map_filter(const Value& value, const TemplateArguments& arguments) {
  TemplateArguments rest = arguments;
  std::optional<Value> path, otherwise;
  for (const auto& [name, own] : arguments.named) {
    if (name == "attribute") path = own;
    if (name == "default") otherwise = own;
  }
  if (path && (!rest.values.empty() || rest.named.size() != (otherwise ? 2 : 1)))
    refuse("these arguments of map are not known to posenc");
  if (!path && rest.values.empty()) refuse("map must have an attribute or the name of a filter");
  const auto items = items_of(value);
  if (path)
    return generator([=]() -> std::optional<Value> {
      const auto one = items->next();
      if (!one) return std::nullopt;
      return attribute_path(*one, *path, otherwise);
    });
  const std::string name = text_in(rest.values[0], "the name of a filter");
  rest.values.erase(rest.values.begin());
  return generator([=]() -> std::optional<Value> {
    const auto one = items->next();
    if (!one) return std::nullopt;
    return filtered(name, *one, rest);
  });
}

// select, selectattr, reject and rejectattr.
template <bool by_attribute, bool keeps>
std::shared_ptr<Stream> select_filter(const Value& value, const TemplateArguments& arguments) {
  TemplateArguments rest = arguments;
  if (by_attribute && rest.values.empty()) refuse("what selects must have an attribute");
  const Value path = by_attribute ? rest.values[0] : Value{};
  if (by_attribute) rest.values.erase(rest.values.begin());
  const bool has_test = !rest.values.empty();
  if (!has_test && !rest.named.empty()) refuse("what selects must have the name of a test");
  const std::string test = has_test ? text_in(rest.values[0], "the name of a test") : "";
  if (has_test) rest.values.erase(rest.values.begin());
  const auto items = items_of(value);
  return generator([=]() -> std::optional<Value> {
    while (auto one = items->next()) {
      const Value own = by_attribute ? attribute_path(*one, path) : *one;
      if ((has_test ? is_test_true(test, own, rest) : is_true(own)) == keeps) return one;
    }
    return std::nullopt;
  });
}

// What sort(), unique(), min() and max() compare.
Value sort_key(const Value& one, const std::optional<Value>& path, bool has_case) {
  Value key = is_given(path) ? attribute_path(one, *path) : one;
  return has_case || key.text() == nullptr ? key : changed(lowered(*key.text()));
}

Value sort_filter(const Value& value, const Given& given) {
  const bool is_reverse = is_flag(given[0]);
  if (is_given(given[2]) && given[2]->text() != nullptr &&
      given[2]->text()->find(',') != std::string::npos)
    refuse("sort has several attributes, which posenc does not know");
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& one : all_of(value)) {
    Value key = sort_key(one, given[2], is_flag(given[1]));
    keyed.emplace_back(std::move(key), std::move(one));
  }
  // Python's is stable in both directions.
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    if (are_equal(a.first, b.first)) return false;  // also where there is no order
    return is_reverse ? is_less(b.first, a.first) : is_less(a.first, b.first);
  });
  TemplateValues sorted;
  for (auto& [key, one] : keyed) sorted.push_back(std::move(one));
  return list_value(std::move(sorted));
}

Value dict_sort(const Value& value, const Given& given) {
  const auto* const dict = value.object<Dict>();
  const std::string by = given[1] ? text_in(*given[1], "by") : "key";
  if (dict == nullptr || (by != "key" && by != "value"))
    refuse("dictsort must have a dict, and by is key or value");
  TemplateValues items;
  for (const auto& [key, own] : dict->items)
    items.push_back(list_value({key, own}, Sequence::Kind::Tuple));
  return sort_filter(list_value(std::move(items)),
                     {given[2], given[0], Value{int64_t{by == "key" ? 0 : 1}}});
}

std::shared_ptr<Stream> unique_filter(const Value& value, const TemplateArguments& arguments) {
  const Given given = bound(arguments, "unique", {"case_sensitive", "attribute"});
  const auto items = items_of(value);
  return generator([=, seen = TemplateValues()]() mutable -> std::optional<Value> {
    while (auto one = items->next()) {
      Value key = sort_key(*one, given[1], is_flag(given[0]));
      const auto same = [&](const Value& other) { return are_equal(other, key); };
      if (std::any_of(seen.begin(), seen.end(), same)) continue;
      seen.push_back(std::move(key));
      return one;
    }
    return std::nullopt;
  });
}

template <bool largest>
Value extreme(const Value& value, const Given& given) {
  std::optional<std::pair<Value, Value>> best;
  for (const Value& one : all_of(value)) {
    Value key = sort_key(one, given[1], is_flag(given[0]));
    if (!best || (largest ? is_less(best->first, key) : is_less(key, best->first)))
      best.emplace(std::move(key), one);
  }
  return best ? best->second : undefined("an item of what is empty");
}

Value sum_filter(const Value& value, const Given& given) {
  Value total = given[1].value_or(Value{int64_t{0}});
  for (const Value& one : all_of(value))
    total = binary("+", total, is_given(given[0]) ? attribute_path(one, *given[0]) : one);
  return total;
}

Value join_filter(const Value& value, const Given& given) {
  const std::string between = given[0] ? text_of(*given[0]) : "";
  std::string text;
  bool is_first = true;
  for (const Value& one : all_of(value)) {
    const Value own = is_given(given[1]) ? attribute_path(one, *given[1]) : one;
    if (own.is<Markup>()) refuse("what safe makes of a text is joined, which posenc does not");
    const std::size_t before = text.size();
    text += (is_first ? "" : between) + text_of(own);
    spend_text(text.size() - before);
    is_first = false;
  }
  return text_value(text);
}

Value first_filter(const Value& value, const Given&) {
  auto first = items_of(value)->next();
  return first ? std::move(*first) : undefined("an item of what is empty");
}

Value last_filter(const Value& value, const Given&) {
  if (value.is<std::shared_ptr<Stream>>()) refuse("a generator is read from its end");
  TemplateValues all = reversed(value);
  return all.empty() ? undefined("an item of what is empty") : std::move(all.front());
}
Value reverse_filter(const Value& value, const Given&) {
  if (value.is<std::shared_ptr<Stream>>()) return list_value(reversed(value));
  if (value.text() == nullptr) return {items_of(list_value(reversed(value)))};
  std::u32string all = characters_of(*value.text());
  std::reverse(all.begin(), all.end());
  return text_value(utf8_of(all));
}
Value list_filter(const Value& value, const Given&) { return list_value(all_of(value)); }
Value length_filter(const Value& value, const Given&) { return {length_of(value)}; }

std::shared_ptr<Stream> items_filter(const Value& value, const TemplateArguments& arguments) {
  bound(arguments, "items", {});
  if (value.is_undefined()) return items_of(value);
  if (value.object<Dict>() == nullptr) refuse("items must have a dict. Got " + type_of(value));
  TemplateValues all;
  for (const auto& [key, own] : value.object<Dict>()->items)
    all.push_back(list_value({key, own}, Sequence::Kind::Tuple));
  return items_of(list_value(std::move(all)));
}

// ---- texts and numbers ----

Value trim_filter(const Value& value, const Given& given) {
  std::optional<std::string> characters;
  if (is_given(given[0])) characters = text_in(*given[0], "what trim takes away");
  return text_value(stripped(text_of(value), characters));
}

Value replace_filter(const Value& value, const Given& given) {
  if (!given[0] || !given[1]) refuse("replace must have two texts");
  const std::string from = text_of(*given[0]);
  if (from.empty()) refuse("what is replaced must not be empty, which posenc does not know");
  const int64_t most =
      is_given(given[2]) ? std::max<int64_t>(integer_in(*given[2], "count"), -1) : -1;
  return text_value(replaced(text_of(value), from, text_of(*given[1]), most));
}

Value indent_filter(const Value& value, const Given& given) {
  std::string blanks(4, ' ');
  if (given[0] && given[0]->text() != nullptr) {
    blanks = *given[0]->text();
  } else if (given[0]) {
    const int64_t width = integer_in(*given[0], "a width");
    blanks = std::string(static_cast<std::size_t>(std::clamp<int64_t>(width, 0, 1000)), ' ');
  }
  std::string text;
  bool is_first = true;
  for (const std::string& line : split_lines(text_in(value, "what is indented") + "\n")) {
    const bool has_blanks = is_first ? is_flag(given[1]) : is_flag(given[2]) || !line.empty();
    spend_text(blanks.size() + line.size());
    text += (is_first ? "" : "\n") + (has_blanks ? blanks : "") + line;
    is_first = false;
  }
  return text_value(text);
}

Value int_filter(const Value& value, const Given& given) {
  if (is_given(given[1])) refuse("int has a base, which posenc does not know");
  if (const auto integer = as_integer(value)) return {*integer};
  constexpr double kMost = 9e18;
  std::optional<double> real;
  if (value.get<double>() != nullptr) real = *value.get<double>();
  if (const std::string* text = value.text()) {
    const std::string own = stripped(*text);
    const bool may_be_number =
        own.find_first_of("0123456789") != std::string::npos || !uppered(own);
    if (may_be_number && own.find_first_not_of("-.0123456789") != std::string::npos)
      refuse("int has " + io::in_quotes(own) + ", which posenc does not know");
    if (const auto integer = platform::parse_number<int64_t>(own)) return {*integer};
    real = platform::parse_number<double>(own);
  }
  if (real && !(std::abs(*real) < kMost)) refuse("int must have a number in 64 bits");
  if (real) return {static_cast<int64_t>(*real)};
  return given[0].value_or(Value{int64_t{0}});
}

Value abs_filter(const Value& value, const Given&) {
  return is_less(value, {int64_t{0}}) ? negative(value) : binary("+", value, {int64_t{0}});
}

Value default_filter(const Value& value, const Given& given) {
  if (!value.is_undefined() && (!is_flag(given[1]) || is_true(value))) return value;
  return given[0].value_or(text_value(""));
}

Value string_filter(const Value& value, const Given&) {
  return value.is<Markup>() ? value : text_value(text_of(value));
}
Value safe_filter(const Value& value, const Given&) { return {Markup{text_of(value)}}; }

template <std::optional<std::string> (*change)(std::string_view)>
Value case_filter(const Value& value, const Given&) {
  return changed(change(text_of(value)));
}

using Generator = std::shared_ptr<Stream> (*)(const Value& value,
                                              const TemplateArguments& arguments);

struct Filter {
  std::vector<const char*> parameters;
  Value (*call)(const Value& value, const Given& given);
};

const std::map<std::string, Filter>& plain_filters() {
  static const std::map<std::string, Filter> kFilters = {
      {"abs", {{}, abs_filter}},
      {"capitalize", {{}, case_filter<capitalized>}},
      {"count", {{}, length_filter}},
      {"d", {{"default_value", "boolean"}, default_filter}},
      {"default", {{"default_value", "boolean"}, default_filter}},
      {"dictsort", {{"case_sensitive", "by", "reverse"}, dict_sort}},
      {"first", {{}, first_filter}},
      {"indent", {{"width", "first", "blank"}, indent_filter}},
      {"int", {{"default", "base"}, int_filter}},
      {"join", {{"d", "attribute"}, join_filter}},
      {"last", {{}, last_filter}},
      {"length", {{}, length_filter}},
      {"list", {{}, list_filter}},
      {"lower", {{}, case_filter<lowered>}},
      {"max", {{"case_sensitive", "attribute"}, extreme<true>}},
      {"min", {{"case_sensitive", "attribute"}, extreme<false>}},
      {"replace", {{"old", "new", "count"}, replace_filter}},
      {"reverse", {{}, reverse_filter}},
      {"safe", {{}, safe_filter}},
      {"sort", {{"reverse", "case_sensitive", "attribute"}, sort_filter}},
      {"string", {{}, string_filter}},
      {"sum", {{"attribute", "start"}, sum_filter}},
      {"trim", {{"chars"}, trim_filter}},
      {"upper", {{}, case_filter<uppered>}}};
  return kFilters;
}

}  // namespace

TemplateValue filtered(const std::string& name, const TemplateValue& value,
                       const TemplateArguments& arguments) {
  static const std::map<std::string, Generator> kGenerators = {
      {"map", map_filter},
      {"select", select_filter<false, true>},
      {"reject", select_filter<false, false>},
      {"selectattr", select_filter<true, true>},
      {"rejectattr", select_filter<true, false>},
      {"items", items_filter},
      {"unique", unique_filter}};
  if (const auto found = kGenerators.find(name); found != kGenerators.end()) {
    // Whatever is wrong is an error where the first item is asked for.
    int depth = std::max(depth_of(value), depth_of(arguments.values));
    for (const auto& [own, given] : arguments.named) depth = std::max(depth, depth_of(given));
    const auto next = [=, make = found->second, made = std::shared_ptr<Stream>()]() mutable {
      if (made == nullptr) made = make(value, arguments);
      return made->next();
    };
    return Value{generator(next, depth_around(depth))};
  }
  if (name == "tojson") return text_value(json_of(value, arguments));
  const auto found = plain_filters().find(name);
  if (found == plain_filters().end())
    refuse("the filter " + io::in_quotes(name) + " is not known to posenc");
  if (value.is<Markup>() && name != "string" && name != "safe" && name != "default" && name != "d")
    refuse("posenc only writes what safe makes of a text. Got it in " + name);
  return found->second.call(value, bound(arguments, name, found->second.parameters));
}

}  // namespace posenc::text::jinja
