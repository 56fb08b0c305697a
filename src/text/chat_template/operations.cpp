// Operators, attributes, items and slices.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "text/chat_template/limits.h"
#include "text/chat_template/python_text.h"
#include "text/chat_template/value.h"

namespace posenc::text::jinja {
namespace {

[[noreturn]] void refuse_operands(const std::string& operation, const TemplateValue& a,
                                  const TemplateValue& b) {
  refuse("the operation " + operation + " of " + type_of(a) + " and " + type_of(b) +
         " is not known to posenc");
}

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

TemplateValue of_integers(const std::string& operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  if (operation == "+") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (operation == "-") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (operation == "*") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (operation == "**") {
    if (b < 0) refuse("an exponent must not be negative. Got " + std::to_string(b));
    result = 1;
    for (int64_t i = 0; i < std::min<int64_t>(b, 64) && !overflows; ++i)
      overflows = __builtin_mul_overflow(result, a, &result);
    overflows = overflows || (b > 64 && a != 0 && a != 1);
  } else {
    if (b == 0) refuse("the divisor must not be 0");
    overflows = a == std::numeric_limits<int64_t>::min() && b == -1;
    if (operation == "/" && !overflows) return {static_cast<double>(a) / static_cast<double>(b)};
    if (!overflows) result = floor_quotient(a, b);
    if (operation == "%" && !overflows) result = a - b * result;
  }
  if (overflows) refuse("integers must be in 64 bits");
  return {result};
}

TemplateValue of_reals(const std::string& operation, double a, double b) {
  if (operation == "+") return {a + b};
  if (operation == "-") return {a - b};
  if (operation == "*") return {a * b};
  if (operation == "/" && b != 0) return {a / b};
  refuse("the operation " + operation + " of floats is not known to posenc, nor a divisor of 0");
}

TemplateValue repeated(const std::string& text, int64_t times) {
  std::string result;
  const auto size = static_cast<int64_t>(text.size());
  constexpr int64_t kFar = int64_t{1} << 40;
  if (size > 0 && times > 0) spend_text(static_cast<std::size_t>(std::min(times, kFar) * size));
  for (int64_t i = 0; i < times && size > 0; ++i) result += text;
  return text_value(result);
}

TemplateValue joined(const Sequence& a, const Sequence& b) {
  TemplateValues items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return list_value(std::move(items), a.kind);
}

// Where a slice begins and ends, as Python's slice.indices().
struct SliceSpan {
  int64_t start, stop, step;
};

SliceSpan span_of(int64_t count, const TemplateValue& start, const TemplateValue& stop,
                  const TemplateValue& step) {
  const auto bound_at = [&](const TemplateValue& value, int64_t otherwise, int64_t low,
                            int64_t high) {
    if (value.is_none()) return otherwise;
    const int64_t given = integer_in(value, "a bound of a slice");
    return std::clamp(given < 0 ? given + count : given, low, high);
  };
  const int64_t by = step.is_none() ? 1 : integer_in(step, "the step of a slice");
  if (by == 0) refuse("the step of a slice must not be 0");
  if (by > 0) return {bound_at(start, 0, 0, count), bound_at(stop, count, 0, count), by};
  return {bound_at(start, count - 1, -1, count - 1), bound_at(stop, -1, -1, count - 1), by};
}

template <typename Items>
Items sliced(const Items& items, const SliceSpan& span) {
  Items result;
  for (int64_t i = span.start; span.step > 0 ? i < span.stop : i > span.stop;) {
    result.push_back(items[static_cast<std::size_t>(i)]);
    if (span.step > std::ssize(items) || span.step < -std::ssize(items)) break;
    i += span.step;
  }
  return result;
}

// Item `given` of `count`, or nothing.
std::optional<std::size_t> index_of(int64_t given, std::size_t count) {
  const auto size = static_cast<int64_t>(count);
  const int64_t index = given < 0 ? given + size : given;
  if (index < 0 || index >= size) return std::nullopt;
  return static_cast<std::size_t>(index);
}

TemplateValue loop_attribute(const Loop& loop, const std::string& name) {
  const auto index = static_cast<int64_t>(loop.index), count = std::ssize(*loop.items);
  const auto neighbour = [&](int64_t at) {
    return at < 0 || at >= count ? undefined("loop." + name)
                                 : (*loop.items)[static_cast<std::size_t>(at)];
  };
  if (name == "index") return {index + 1};
  if (name == "index0") return {index};
  if (name == "revindex") return {count - index};
  if (name == "revindex0") return {count - index - 1};
  if (name == "first") return {index == 0};
  if (name == "last") return {index + 1 == count};
  if (name == "length") return {count};
  if (name == "depth") return {int64_t{1}};
  if (name == "depth0") return {int64_t{0}};
  if (name == "previtem") return neighbour(index - 1);
  if (name == "nextitem") return neighbour(index + 1);
  if (name != "cycle") refuse("loop." + name + " is not known to posenc");
  return function_value("cycle", [index](const TemplateArguments& given) {
    if (given.values.empty() || !given.named.empty()) refuse("cycle must have arguments");
    return given.values[static_cast<std::size_t>(index) % given.values.size()];
  });
}

// What has the name apart from items; nothing if none has.
std::optional<TemplateValue> own_attribute(const TemplateValue& of, const std::string& name) {
  if (of.is_undefined())
    refuse("what has the attribute " + name + " must be defined. Got " + of.get<Undefined>()->what);
  if (name.starts_with("_")) refuse("the attribute " + name + " must not be asked for");
  if (const auto* loop = of.object<Loop>()) return loop_attribute(*loop, name);
  if (const auto* space = std::get_if<std::shared_ptr<Namespace>>(&of.data)) {
    const TemplateValue* const found = (*space)->names.find(name);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  return method_of(of, name);
}

std::optional<TemplateValue> own_item(const TemplateValue& of, const TemplateValue& key) {
  if (of.is_undefined()) refuse("what has items must be defined. Got " + of.get<Undefined>()->what);
  if (const auto* dict = of.object<Dict>()) {
    const TemplateValue* const found = dict->find(key);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  const auto at = as_integer(key);
  if (!at) return std::nullopt;
  if (const std::string* text = of.text()) {
    const std::u32string all = characters_of(*text);
    const auto index = index_of(*at, all.size());
    if (!index) return std::nullopt;
    return text_value(utf8_of(std::u32string_view(all).substr(*index, 1)));
  }
  const auto* const sequence = of.object<Sequence>();
  if (sequence == nullptr || sequence->kind == Sequence::Kind::View) return std::nullopt;
  const auto index = index_of(*at, sequence->items.size());
  return index ? std::optional(sequence->items[*index]) : std::nullopt;
}

std::string shown_key(const TemplateValue& key) {
  return key.text() != nullptr ? io::in_quotes(*key.text()) : "an item of the type " + type_of(key);
}

}  // namespace

TemplateValue binary(const std::string& operation, const TemplateValue& a, const TemplateValue& b) {
  const auto x = as_integer(a), y = as_integer(b);
  if (x && y) return of_integers(operation, *x, *y);
  const double *p = a.get<double>(), *q = b.get<double>();
  if ((p != nullptr || x) && (q != nullptr || y))
    return of_reals(operation, p != nullptr ? *p : static_cast<double>(*x),
                    q != nullptr ? *q : static_cast<double>(*y));
  if (operation == "+" && a.text() != nullptr && b.text() != nullptr)
    return text_value(*a.text() + *b.text());
  if (operation == "*" && a.text() != nullptr && y) return repeated(*a.text(), *y);
  if (operation == "*" && b.text() != nullptr && x) return repeated(*b.text(), *x);
  const auto *s = a.object<Sequence>(), *t = b.object<Sequence>();
  if (operation == "+" && s != nullptr && t != nullptr && s->kind == t->kind &&
      (s->kind == Sequence::Kind::List || s->kind == Sequence::Kind::Tuple))
    return joined(*s, *t);
  refuse_operands(operation, a, b);
}

TemplateValue negative(const TemplateValue& value) {
  if (const double* real = value.get<double>()) return {-*real};
  return of_integers("-", 0, integer_in(value, "what has a sign"));
}

TemplateValue attribute_of(const TemplateValue& of, const std::string& name) {
  if (auto found = own_attribute(of, name)) return *found;
  if (auto found = own_item(of, text_value(name))) return *found;
  return undefined(io::in_quotes(name));
}

TemplateValue item_of(const TemplateValue& of, const TemplateValue& key) {
  if (auto found = own_item(of, key)) return *found;
  if (key.text() != nullptr)
    if (auto found = own_attribute(of, *key.text())) return *found;
  return undefined(shown_key(key));
}

TemplateValue slice_of(const TemplateValue& of, const TemplateValue& start,
                       const TemplateValue& stop, const TemplateValue& step) {
  if (const std::string* text = of.text()) {
    const std::u32string all = characters_of(*text);
    return text_value(utf8_of(sliced(all, span_of(std::ssize(all), start, stop, step))));
  }
  const auto* const sequence = of.object<Sequence>();
  if (sequence == nullptr || sequence->kind == Sequence::Kind::View)
    refuse("posenc slices texts and lists only. Got " + type_of(of));
  return list_value(
      sliced(sequence->items, span_of(std::ssize(sequence->items), start, stop, step)),
      sequence->kind);
}

}  // namespace posenc::text::jinja
