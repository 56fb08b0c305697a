#include "text/chat_template/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "text/chat_template/limits.h"
#include "text/chat_template/python_text.h"

namespace posenc::text::jinja {
namespace {

using Kind = Sequence::Kind;

// Of true and of numbers; nothing of others.
std::optional<double> number_of(const TemplateValue& value) {
  if (const double* real = value.get<double>()) return *real;
  const auto integer = as_integer(value);
  if (!integer) return std::nullopt;
  constexpr int64_t kExact = int64_t{1} << 53;
  if (*integer > kExact || *integer < -kExact)
    refuse("an integer beyond 2^53 must not meet a float");
  return static_cast<double>(*integer);
}

const std::string* text_or_markup(const TemplateValue& value) {
  if (const Markup* markup = value.get<Markup>()) return &markup->text;
  return value.text();
}

bool are_equal_items(const TemplateValues& a, const TemplateValues& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), are_equal);
}

bool are_equal_dicts(const Dict& a, const Dict& b) {
  return a.items.size() == b.items.size() &&
         std::all_of(a.items.begin(), a.items.end(), [&](const auto& one) {
           const TemplateValue* other = b.find(one.first);
           return other != nullptr && are_equal(one.second, *other);
         });
}

}  // namespace

const TemplateValue* Dict::find(std::string_view key) const {
  spend(items.size() / 16);
  for (const auto& [name, value] : items)
    if (name.text() != nullptr && *name.text() == key) return &value;
  return nullptr;
}

const TemplateValue* Dict::find(const TemplateValue& key) const {
  if (const std::string* text = text_or_markup(key)) return find(std::string_view(*text));
  for (const auto& [name, value] : items)
    if (are_equal(name, key)) return &value;
  return nullptr;
}

void Dict::set(const std::string& key, TemplateValue value) {
  for (auto& [name, own] : items) {
    if (name.text() == nullptr || *name.text() != key) continue;
    own = std::move(value);
    return;
  }
  items.emplace_back(text_value(key), std::move(value));
}

TemplateValue undefined(const std::string& what) { return {Undefined{what}}; }
TemplateValue text_value(std::string text) { return {std::move(text)}; }
TemplateValue integer_value(int64_t value) { return {value}; }
std::string type_of(const TemplateValue& value) {
  constexpr std::array<const char*, 13> kNames = {
      "undefined", "None", "bool",      "int",  "float",     "str",     "Markup",
      "list",      "dict", "namespace", "loop", "generator", "function"};
  const auto* const sequence = value.object<Sequence>();
  if (sequence == nullptr) return kNames[value.data.index()];
  constexpr std::array<const char*, 4> kSequences = {"list", "tuple", "range", "view of a dict"};
  return kSequences[static_cast<std::size_t>(sequence->kind)];
}

bool is_true(const TemplateValue& value) {
  if (value.is_undefined() || value.is_none()) return false;
  if (const bool* truth = value.get<bool>()) return *truth;
  if (const int64_t* integer = value.get<int64_t>()) return *integer != 0;
  if (const double* real = value.get<double>()) return *real != 0;
  if (const std::string* text = text_or_markup(value)) return !text->empty();
  if (const auto* sequence = value.object<Sequence>()) return !sequence->items.empty();
  if (const auto* dict = value.object<Dict>()) return !dict->items.empty();
  if (const auto* loop = value.object<Loop>()) return !loop->items->empty();
  return true;
}

bool are_equal(const TemplateValue& a, const TemplateValue& b) {
  spend(1);
  const auto x = as_integer(a), y = as_integer(b);
  if (x && y) return *x == *y;
  const bool has_real = a.is<double>() || b.is<double>();
  if (has_real && (x || a.is<double>()) && (y || b.is<double>()))
    return *number_of(a) == *number_of(b);
  if (const std::string *s = text_or_markup(a), *t = text_or_markup(b);
      s != nullptr && t != nullptr)
    return *s == *t;
  if (const auto *s = a.object<Sequence>(), *t = b.object<Sequence>();
      s != nullptr && t != nullptr) {
    if (s->kind == Kind::View && t->kind == Kind::View) refuse("views of a dict are compared");
    return s->kind == t->kind && are_equal_items(s->items, t->items);
  }
  if (const auto *s = a.object<Dict>(), *t = b.object<Dict>(); s != nullptr && t != nullptr)
    return are_equal_dicts(*s, *t);
  if (a.data.index() != b.data.index() || as_integer(a) || a.is<double>() || a.is<std::string>())
    return false;
  if (a.is_undefined() || a.is_none()) return true;
  refuse("values of the type " + type_of(a) + " are compared");
}

bool is_less(const TemplateValue& a, const TemplateValue& b) {
  if (a.text() != nullptr && b.text() != nullptr) return *a.text() < *b.text();  // as characters
  const auto x = as_integer(a), y = as_integer(b);
  if (x && y) return *x < *y;
  if (const auto p = number_of(a), q = number_of(b); p && q) return *p < *q;
  if (const auto *s = a.object<Sequence>(), *t = b.object<Sequence>();
      s != nullptr && t != nullptr && s->kind == t->kind && s->kind <= Kind::Tuple) {
    const auto [x1, y1] = std::mismatch(s->items.begin(), s->items.end(), t->items.begin(),
                                        t->items.end(), are_equal);
    if (x1 == s->items.end() || y1 == t->items.end()) return y1 != t->items.end();
    return is_less(*x1, *y1);
  }
  refuse("values of the types " + type_of(a) + " and " + type_of(b) + " have no order");
}

void check_hashable(const TemplateValue& key) {
  const auto* const sequence = key.object<Sequence>();
  if (key.object<Dict>() != nullptr ||
      (sequence != nullptr && (sequence->kind == Kind::List || sequence->kind == Kind::View)))
    refuse("a key of a dict must be no " + type_of(key));
  if (sequence != nullptr) std::ranges::for_each(sequence->items, check_hashable);
}

bool is_in(const TemplateValue& part, const TemplateValue& whole) {
  if (const std::string* text = text_or_markup(whole)) {
    spend_text(text->size());
    const std::string* const own = text_or_markup(part);
    if (own == nullptr) refuse("what is in a text must be a text. Got " + type_of(part));
    return text->find(*own) != std::string::npos;
  }
  if (const auto* dict = whole.object<Dict>()) {
    check_hashable(part);
    return dict->find(part) != nullptr;
  }
  const auto items = items_of(whole);
  while (const auto one = items->next())
    if (are_equal(*one, part)) return true;
  return false;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> written = {};
  const auto end = std::to_chars(written.data(), written.data() + written.size(), value,
                                 std::chars_format::scientific);
  const std::string text(written.data(), end.ptr);
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const std::string sign = text[0] == '-' ? "-" : "";
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string rest = digits.substr(whole);
  return sign + digits.substr(0, whole) + "." + (rest.empty() ? "0" : rest);
}

std::string represented(const TemplateValue& value) {
  spend(1);
  if (const std::string* text = value.text()) return represented_text(*text);
  const auto* const sequence = value.object<Sequence>();
  const auto* const dict = value.object<Dict>();
  if (value.is_undefined()) return "Undefined";
  if (sequence == nullptr && dict == nullptr) return text_of(value);
  std::string text;
  const auto add = [&](const std::string& one) {
    spend_text(one.size());
    text += (text.empty() ? "" : ", ") + one;
  };
  if (dict != nullptr) {
    for (const auto& [name, own] : dict->items) add(represented(name) + ": " + represented(own));
    return "{" + text + "}";
  }
  if (sequence->kind != Kind::List && sequence->kind != Kind::Tuple)
    refuse("a " + type_of(value) + " is written as a text, which posenc does not");
  for (const TemplateValue& one : sequence->items) add(represented(one));
  if (sequence->kind == Kind::List) return "[" + text + "]";
  return "(" + text + (sequence->items.size() == 1 ? ",)" : ")");
}

std::string text_of(const TemplateValue& value) {
  if (const std::string* text = text_or_markup(value)) return *text;
  if (value.is_undefined()) return "";
  if (value.is_none()) return "None";
  if (const bool* truth = value.get<bool>()) return *truth ? "True" : "False";
  if (const int64_t* integer = value.get<int64_t>()) return std::to_string(*integer);
  if (const double* real = value.get<double>()) return number_text(*real);
  if (value.object<Sequence>() != nullptr || value.object<Dict>() != nullptr)
    return represented(value);
  refuse("a " + type_of(value) + " is written as a text, which posenc does not");
}

int64_t length_of(const TemplateValue& value) {
  if (value.is_undefined()) return 0;
  if (const std::string* text = text_or_markup(value)) {
    spend_text(text->size());
    return static_cast<int64_t>(characters_of(*text).size());
  }
  if (const auto* sequence = value.object<Sequence>()) return std::ssize(sequence->items);
  if (const auto* dict = value.object<Dict>()) return std::ssize(dict->items);
  refuse("a " + type_of(value) + " has no length");
}

std::shared_ptr<Stream> items_of(const TemplateValue& value) {
  if (const auto* stream = std::get_if<std::shared_ptr<Stream>>(&value.data)) return *stream;
  auto rest = [items = all_of(value), at = std::size_t{0}]() mutable {
    return at < items.size() ? std::optional(std::move(items[at++])) : std::nullopt;
  };
  return std::make_shared<Stream>(Stream{std::move(rest), depth_around(depth_of(value))});
}

TemplateValues all_of(const TemplateValue& value) {
  TemplateValues all;
  if (value.is_undefined()) return all;
  if (const auto* sequence = value.object<Sequence>()) {
    for (const TemplateValue& one : sequence->items)
      spend_text(kTextOfStep + (one.text() != nullptr ? one.text()->size() : 0));
    return sequence->items;
  }
  if (const auto* dict = value.object<Dict>()) {
    spend(dict->items.size());
    for (const auto& [name, own] : dict->items) all.push_back(name);
  } else if (const std::string* text = text_or_markup(value)) {
    spend(text->size());
    for (const char32_t c : characters_of(*text)) all.push_back(text_value(utf8_of({&c, 1})));
  } else if (const auto* stream = std::get_if<std::shared_ptr<Stream>>(&value.data)) {
    while (auto one = (*stream)->next()) {
      spend(1);
      all.push_back(std::move(*one));
    }
  } else {
    refuse("what is gone through must be a list or another collection. Got " + type_of(value));
  }
  return all;
}

TemplateValues reversed(const TemplateValue& value) {
  TemplateValues all = all_of(value);
  std::reverse(all.begin(), all.end());
  return all;
}

std::optional<int64_t> as_integer(const TemplateValue& value) {
  if (const bool* truth = value.get<bool>()) return *truth ? 1 : 0;
  if (const int64_t* integer = value.get<int64_t>()) return *integer;
  return std::nullopt;
}

const std::string& text_in(const TemplateValue& value, const std::string& of) {
  if (value.text() == nullptr) refuse(of + " must be a text. Got " + type_of(value));
  return *value.text();
}

int64_t integer_in(const TemplateValue& value, const std::string& of) {
  const auto integer = as_integer(value);
  if (!integer) refuse(of + " must be an integer. Got " + type_of(value));
  return *integer;
}

std::vector<std::optional<TemplateValue>> bound(const TemplateArguments& arguments,
                                                const std::string& name,
                                                const std::vector<const char*>& parameters) {
  if (arguments.values.size() > parameters.size())
    refuse(name + " must have at most " + std::to_string(parameters.size()) + " arguments. Got " +
           std::to_string(arguments.values.size()));
  std::vector<std::optional<TemplateValue>> given(arguments.values.begin(), arguments.values.end());
  given.resize(parameters.size());
  for (const auto& [own, value] : arguments.named) {
    const auto found = std::find(parameters.begin(), parameters.end(), own);
    const auto at = static_cast<std::size_t>(found - parameters.begin());
    if (found == parameters.end() || given[at])
      refuse("the argument " + io::in_quotes(own) + " of " + name + " is not known, or twice");
    given[at] = value;
  }
  return given;
}

}  // namespace posenc::text::jinja
