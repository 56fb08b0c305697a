// The methods of Python's texts, lists and dicts that templates call.

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "text/chat_template/limits.h"
#include "text/chat_template/python_text.h"
#include "text/chat_template/value.h"

namespace posenc::text::jinja {
namespace {

using Given = std::vector<std::optional<TemplateValue>>;

// What a method of a text makes of what its parameters are given.
struct TextMethod {
  std::vector<const char*> parameters;
  std::size_t required;  // how many must be given
  bool by_name;          // whether they may be named
  TemplateValue (*call)(const std::string& text, const Given& given);
};

bool has(const std::optional<TemplateValue>& one) { return one && !one->is_none(); }
std::optional<std::string> text_or_none(const std::optional<TemplateValue>& one) {
  if (!has(one)) return std::nullopt;
  return text_in(*one, "what the method of a text is given");
}
int64_t count_or_all(const std::optional<TemplateValue>& one) {
  return one ? std::max<int64_t>(integer_in(*one, "a count"), -1) : -1;
}

template <bool left, bool right>
TemplateValue strip(const std::string& text, const Given& given) {
  return text_value(stripped(text, text_or_none(given[0]), left, right));
}

template <bool from_right>
TemplateValue split_text(const std::string& text, const Given& given) {
  const auto separator = text_or_none(given[0]);
  if (separator && separator->empty()) refuse("a separator must not be empty");
  TemplateValues parts;
  for (std::string& one : split(text, separator, count_or_all(given[1]), from_right))
    parts.push_back(text_value(std::move(one)));
  return list_value(std::move(parts));
}

template <bool at_end>
TemplateValue has_end(const std::string& text, const Given& given) {
  const auto is_there = [&](const TemplateValue& one) {
    const std::string& part = text_in(one, "a part of a text");
    return at_end ? text.ends_with(part) : text.starts_with(part);
  };
  const auto* const several = given[0]->object<Sequence>();
  if (several == nullptr) return {is_there(*given[0])};
  if (several->kind != Sequence::Kind::Tuple) refuse("several parts must be a tuple");
  return {std::any_of(several->items.begin(), several->items.end(), is_there)};
}

template <bool at_end>
TemplateValue remove_end(const std::string& text, const Given& given) {
  const std::string& part = text_in(*given[0], "a part of a text");
  if (!(at_end ? text.ends_with(part) : text.starts_with(part))) return text_value(text);
  return text_value(at_end ? text.substr(0, text.size() - part.size()) : text.substr(part.size()));
}

template <bool from_right>
TemplateValue find(const std::string& text, const Given& given) {
  const std::string& part = text_in(*given[0], "a part of a text");
  const std::size_t at = from_right ? text.rfind(part) : text.find(part);
  if (at == std::string::npos) return {int64_t{-1}};
  return {static_cast<int64_t>(characters_of(text.substr(0, at)).size())};
}

TemplateValue count(const std::string& text, const Given& given) {
  const std::string& part = text_in(*given[0], "a part of a text");
  if (part.empty()) return {length_of(text_value(text)) + 1};
  return {static_cast<int64_t>(split(text, part, -1).size()) - 1};
}

TemplateValue replace(const std::string& text, const Given& given) {
  const std::string &from = text_in(*given[0], "what is replaced"),
                    &to = text_in(*given[1], "what replaces it");
  if (from.empty()) refuse("what is replaced must not be empty, which posenc does not know");
  return text_value(replaced(text, from, to, count_or_all(given[2])));
}

TemplateValue join(const std::string& text, const Given& given) {
  std::string result;
  bool is_first = true;
  for (const TemplateValue& one : all_of(*given[0])) {
    const std::string& own = text_in(one, "what is joined");
    spend_text(text.size() + own.size());
    result += (is_first ? "" : text) + own;
    is_first = false;
  }
  return text_value(result);
}

TemplateValue lines(const std::string& text, const Given& given) {
  TemplateValues parts;
  for (std::string& one : split_lines(text, given[0] && is_true(*given[0])))
    parts.push_back(text_value(std::move(one)));
  return list_value(std::move(parts));
}

template <std::optional<std::string> (*change)(std::string_view)>
TemplateValue change_case(const std::string& text, const Given&) {
  const auto changed = change(text);
  if (!changed) refuse("the case of " + io::in_quotes(text) + " is changed, which posenc does not");
  return text_value(*changed);
}

TemplateValue is_space(const std::string& text, const Given&) {
  return {!text.empty() && stripped(text).empty()};
}

const std::map<std::string, TextMethod>& text_methods() {
  static const std::map<std::string, TextMethod> kMethods = {
      {"strip", {{"chars"}, 0, false, strip<true, true>}},
      {"lstrip", {{"chars"}, 0, false, strip<true, false>}},
      {"rstrip", {{"chars"}, 0, false, strip<false, true>}},
      {"split", {{"sep", "maxsplit"}, 0, true, split_text<false>}},
      {"rsplit", {{"sep", "maxsplit"}, 0, true, split_text<true>}},
      {"splitlines", {{"keepends"}, 0, true, lines}},
      {"startswith", {{"prefix"}, 1, false, has_end<false>}},
      {"endswith", {{"suffix"}, 1, false, has_end<true>}},
      {"removeprefix", {{"prefix"}, 1, false, remove_end<false>}},
      {"removesuffix", {{"suffix"}, 1, false, remove_end<true>}},
      {"find", {{"sub"}, 1, false, find<false>}},
      {"rfind", {{"sub"}, 1, false, find<true>}},
      {"count", {{"sub"}, 1, false, count}},
      {"replace", {{"old", "new", "count"}, 2, false, replace}},
      {"join", {{"iterable"}, 1, false, join}},
      {"lower", {{}, 0, false, change_case<lowered>}},
      {"upper", {{}, 0, false, change_case<uppered>}},
      {"title", {{}, 0, false, change_case<titled>}},
      {"capitalize", {{}, 0, false, change_case<capitalized>}},
      {"isspace", {{}, 0, false, is_space}}};
  return kMethods;
}

// What Python's types have beside these, which is not undefined.
bool is_of_python(const std::string& type, const std::string& name) {
  static const std::map<std::string, std::set<std::string>> kOthers = {
      {"str", {"casefold",     "center",    "encode",    "expandtabs",  "format",    "format_map",
               "index",        "isalnum",   "isalpha",   "isascii",     "isdecimal", "isdigit",
               "isidentifier", "islower",   "isnumeric", "isprintable", "istitle",   "isupper",
               "ljust",        "maketrans", "partition", "rindex",      "rjust",     "rpartition",
               "swapcase",     "translate", "zfill"}},
      {"list", {"append", "clear", "copy", "extend", "insert", "pop", "remove", "reverse", "sort"}},
      {"dict", {"clear", "copy", "fromkeys", "pop", "popitem", "setdefault", "update"}},
      {"range", {"start", "step", "stop"}},
      {"view of a dict", {"isdisjoint", "mapping"}},
      {"generator", {"close", "send", "throw"}},
      {"function", {"arguments", "name", "catch_kwargs", "catch_varargs", "caller"}}};
  if (type == "int" || type == "bool" || type == "float") {
    static const std::set<std::string> kOfNumbers = {
        "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
        "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
        "numerator",        "real",      "to_bytes"};
    return kOfNumbers.count(name) == 1;
  }
  const auto found = kOthers.find(type);
  return found != kOthers.end() && found->second.count(name) == 1;
}

std::optional<TemplateValue> text_method(const std::string& text, const std::string& name) {
  const auto found = text_methods().find(name);
  if (found == text_methods().end()) return std::nullopt;
  return function_value(name, [text, &method = found->second, name](const TemplateArguments& all) {
    if (!method.by_name && !all.named.empty()) refuse(name + " must have no named arguments");
    const Given given = bound(all, name, method.parameters);
    for (std::size_t i = 0; i < method.required; ++i)
      if (!given[i]) refuse(name + " must have an argument " + method.parameters[i]);
    return method.call(text, given);
  });
}

// What goes over the items of a dict: name is one of items, keys and values.
TemplateValue view_of(const Dict& dict, const std::string& name) {
  TemplateValues all;
  for (const auto& [key, value] : dict.items) {
    if (name == "items") {
      all.push_back(list_value({key, value}, Sequence::Kind::Tuple));
    } else {
      all.push_back(name == "keys" ? key : value);
    }
  }
  return list_value(std::move(all), Sequence::Kind::View);
}

std::optional<TemplateValue> dict_method(const TemplateValue& of, const std::string& name) {
  if (name == "items" || name == "keys" || name == "values")
    return function_value(
        name,
        [of, name](const TemplateArguments& all) {
          bound(all, name, {});
          return view_of(*of.object<Dict>(), name);
        },
        of);
  if (name != "get") return std::nullopt;
  return function_value(
      name,
      [of](const TemplateArguments& all) {
        if (!all.named.empty()) refuse("get must have no named arguments");
        const Given given = bound(all, "get", {"key", "default"});
        if (!given[0]) refuse("get must have a key");
        check_hashable(*given[0]);
        const TemplateValue* const found = of.object<Dict>()->find(*given[0]);
        return found != nullptr ? *found : given[1].value_or(TemplateValue{nullptr});
      },
      of);
}

std::optional<TemplateValue> sequence_method(const TemplateValue& of, const std::string& name) {
  const bool is_view = of.object<Sequence>()->kind == Sequence::Kind::View;
  if (is_view || (name != "index" && name != "count")) return std::nullopt;
  const auto call = [of, name](const TemplateArguments& all) {
    const Given given = bound(all, name, {"value"});
    if (!given[0] || !all.named.empty()) refuse(name + " must have a value");
    const TemplateValues& items = of.object<Sequence>()->items;
    const auto is_it = [&](const TemplateValue& one) { return are_equal(one, *given[0]); };
    if (name == "count") return integer_value(std::count_if(items.begin(), items.end(), is_it));
    const auto found = std::find_if(items.begin(), items.end(), is_it);
    if (found == items.end()) refuse("what index looks for must be in the list");
    return integer_value(found - items.begin());
  };
  return function_value(name, call, of);
}

}  // namespace

std::optional<TemplateValue> method_of(const TemplateValue& of, const std::string& name) {
  std::optional<TemplateValue> found;
  if (const std::string* text = of.text()) {
    found = text_method(*text, name);
  } else if (of.object<Dict>() != nullptr) {
    found = dict_method(of, name);
  } else if (of.object<Sequence>() != nullptr) {
    found = sequence_method(of, name);
  } else if (of.is<Markup>()) {
    refuse("posenc only writes what safe makes of a text. Got its attribute " + name);
  }
  if (!found && is_of_python(type_of(of), name))
    refuse("the attribute " + name + " of a " + type_of(of) + " is not known to posenc");
  return found;
}

}  // namespace posenc::text::jinja
