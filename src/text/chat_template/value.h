#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace posenc::text::jinja {

/// Why a template, or a value that it makes, is refused. What renders adds the line.
struct TemplateRefusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] inline void refuse(const std::string& what) { throw TemplateRefusal(what); }

struct TemplateValue;
using TemplateValues = std::vector<TemplateValue>;
using NamedValues = std::vector<std::pair<std::string, TemplateValue>>;
using KeyedValues = std::vector<std::pair<TemplateValue, TemplateValue>>;

/// What a call is given.
struct TemplateArguments;

/// Jinja's undefined: false, empty, and written as nothing.
struct Undefined {
  std::string what;  ///< for messages
};
/// What the filter safe makes of a text, which can only be written.
struct Markup {
  std::string text;
};
struct Sequence {
  enum class Kind { List, Tuple, Range, View };  ///< View: what keys(), values(), items() return
  Kind kind;
  TemplateValues items;
  int depth;  ///< depth_around()
};
/// A dict, in order of insertion, or a namespace, which `set` changes. Keys are texts, numbers,
/// true, false and none; 1 and true are one key.
struct Dict {
  KeyedValues items;
  int depth = 0;
  const TemplateValue* find(std::string_view key) const;
  const TemplateValue* find(const TemplateValue& key) const;
  void set(const std::string& key, TemplateValue value);
};
/// The variable `loop`.
struct Loop {
  std::shared_ptr<const TemplateValues> items;
  std::size_t index;  ///< from 0
  int depth;
};
/// A generator, which can be gone through once.
struct Stream {
  std::function<std::optional<TemplateValue>()> next;
  int depth;
};
/// A function, a macro, or a method with its object.
struct Function {
  std::string name;
  std::function<TemplateValue(const TemplateArguments&)> call;
  int depth;
};
/// What `namespace()` returns.
struct Namespace {
  Dict names;
};

/// A value of Python.
struct TemplateValue {
  std::variant<Undefined, std::nullptr_t, bool, int64_t, double, std::string, Markup,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>,
               std::shared_ptr<Namespace>, std::shared_ptr<const Loop>, std::shared_ptr<Stream>,
               std::shared_ptr<const Function>>
      data;

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(data);
  }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
  /// What a shared alternative refers to, or nullptr.
  template <typename T>
  const T* object() const {
    const auto* const held = std::get_if<std::shared_ptr<const T>>(&data);
    return held != nullptr ? held->get() : nullptr;
  }
  const std::string* text() const { return get<std::string>(); }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<std::nullptr_t>(); }
};

struct TemplateArguments {
  TemplateValues values;
  NamedValues named = {};
};

TemplateValue undefined(const std::string& what);
TemplateValue text_value(std::string text);
TemplateValue integer_value(int64_t value);
TemplateValue list_value(TemplateValues items, Sequence::Kind kind = Sequence::Kind::List);
TemplateValue dict_value(NamedValues items);
TemplateValue keyed_value(KeyedValues items);
/// `of`: what the function holds.
TemplateValue function_value(std::string name,
                             std::function<TemplateValue(const TemplateArguments&)> call,
                             const TemplateValue& of = {});

/// The name of its type in Python.
std::string type_of(const TemplateValue& value);
bool is_true(const TemplateValue& value);
/// As Python compares: true is 1, and a list is no tuple.
bool are_equal(const TemplateValue& a, const TemplateValue& b);
bool is_less(const TemplateValue& a, const TemplateValue& b);
/// Refuses a list or a dict, of which Python asks a dict in vain.
void check_hashable(const TemplateValue& key);
/// `part in whole`.
bool is_in(const TemplateValue& part, const TemplateValue& whole);
/// Python's str() and repr().
std::string text_of(const TemplateValue& value);
std::string represented(const TemplateValue& value);
std::string number_text(double value);
/// `len()`.
int64_t length_of(const TemplateValue& value);

/// Those of what a loop or a filter goes through, one after another.
std::shared_ptr<Stream> items_of(const TemplateValue& value);
TemplateValues all_of(const TemplateValue& value);
/// The last one first.
TemplateValues reversed(const TemplateValue& value);

/// `a operation b`: + - * / // % **.
TemplateValue binary(const std::string& operation, const TemplateValue& a, const TemplateValue& b);
TemplateValue negative(const TemplateValue& value);

/// `of.name`, which prefers methods, and `of[key]`, which prefers items; `of[start:stop:step]`.
TemplateValue attribute_of(const TemplateValue& of, const std::string& name);
TemplateValue item_of(const TemplateValue& of, const TemplateValue& key);
TemplateValue slice_of(const TemplateValue& of, const TemplateValue& start,
                       const TemplateValue& stop, const TemplateValue& step);

/// The method of a text, a list or a dict; nothing if Python's has none of this name.
std::optional<TemplateValue> method_of(const TemplateValue& of, const std::string& name);

/// A value of JSON, and json.dumps() of one as transformers' filter `tojson` calls it.
TemplateValue value_of_json(std::string_view json, const std::string& what);
std::string json_of(const TemplateValue& value, const TemplateArguments& arguments);

/// What is given for each of the parameters, in their order; refuses others.
std::vector<std::optional<TemplateValue>> bound(const TemplateArguments& arguments,
                                                const std::string& name,
                                                const std::vector<const char*>& parameters);
/// A text, or an integer, that a parameter must be.
const std::string& text_in(const TemplateValue& value, const std::string& of);
int64_t integer_in(const TemplateValue& value, const std::string& of);
/// The integer that Python takes the value as: true is 1.
std::optional<int64_t> as_integer(const TemplateValue& value);

}  // namespace posenc::text::jinja
