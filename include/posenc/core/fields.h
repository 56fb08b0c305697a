#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/export.h"

/// @file
/// The fields of a struct of options, listed once, in the struct: what compares options, prints
/// them, or refuses those that a module does not read goes through the list.
//
// posenc-budget: two macros, and the comparison that both and operator== need

/// Lists the members of `Struct` and of its bases, and defines operator==. Those that only training
/// or the beginning of a module reads stand in POSENC_TRAINING_FIELDS. Lint compares both lists
/// with the struct.
#define POSENC_FIELDS(Struct, ...)                                                       \
 public:                                                                                 \
  template <typename Visit>                                                              \
  void visit_fields(Visit&& visit) const {                                               \
    visit(#__VA_ARGS__, __VA_ARGS__);                                                    \
  }                                                                                      \
  template <typename Same, std::enable_if_t<std::is_same<Same, Struct>::value, int> = 0> \
  friend bool operator==(const Same& a, const Same& b) {                                 \
    return !::posenc::fields::differ(a, b, ::posenc::fields::Which::All);                \
  }                                                                                      \
  static_assert(true, "")
/// Lists the members that results in eval mode do not depend on, such as the probability of a
/// dropout, beside POSENC_FIELDS with the others.
#define POSENC_TRAINING_FIELDS(...)                 \
 public:                                            \
  template <typename Visit>                         \
  void visit_training_fields(Visit&& visit) const { \
    visit(#__VA_ARGS__, __VA_ARGS__);               \
  }                                                 \
  static_assert(true, "")

namespace posenc POSENC_EXPORT {
namespace fields POSENC_EXPORT {

/// Which fields are compared.
enum class Which {
  All,       ///< all
  EvalMode,  ///< those that results in eval mode may depend on
};

/// A visitor that does nothing.
struct Nothing {
  /// Does nothing.
  template <typename... Values>
  void operator()(const char*, const Values&...) const {}
};

/// Passes the names of a struct's fields, as the macros' argument, and their values to a visitor.
/// Specialised for structs that are not posenc's.
template <typename T, typename = void>
struct List;
/// That of a struct with POSENC_FIELDS.
template <typename T>
struct List<T, std::void_t<decltype(std::declval<const T&>().visit_fields(Nothing()))>> {
  /// Visits what POSENC_FIELDS lists.
  template <typename Visit>
  static void visit(const T& object, Visit&& visit) {
    object.visit_fields(visit);
  }
};

/// Whether a struct lists its fields.
template <typename T, typename = void>
struct IsListed : std::false_type {};
/// It does.
template <typename T>
struct IsListed<
    T, std::void_t<decltype(List<T>::visit(std::declval<const T&>(), std::declval<Nothing&>()))>>
    : std::true_type {};
/// Whether it has POSENC_TRAINING_FIELDS.
template <typename T, typename = void>
struct HasTrainingFields : std::false_type {};
/// It has.
template <typename T>
struct HasTrainingFields<
    T, std::void_t<decltype(std::declval<const T&>().visit_training_fields(Nothing()))>>
    : std::true_type {};

/// The name of a field in what the macros make of their argument: `dim` of `dim_, base_`, 0.
std::string field_name(const char* names, std::size_t index);

/// Calls visit(names, index, of_a, of_b) for each field until it returns true; returns whether it
/// did.
template <typename T, typename Visit>
bool any_of_pairs(const T& a, const T& b, Which which, Visit&& visit) {
  bool found = false;
  const auto visit_pairs = [&](auto&& visit_fields) {
    visit_fields(a, [&](const char* names, const auto&... of_a) {
      visit_fields(b, [&](const char*, const auto&... of_b) {
        std::size_t index = 0;
        ((found = found || visit(names, index++, of_a, of_b)), ...);
      });
    });
  };
  visit_pairs([](const T& object, auto&& own) { List<T>::visit(object, own); });
  if constexpr (HasTrainingFields<T>::value) {
    if (which == Which::All)
      visit_pairs([](const T& object, auto&& own) { object.visit_training_fields(own); });
  }
  return found;
}

/// Whether two values differ. NaN equals NaN. `where`, unless null, then begins with the name of
/// the first field that differs, such as `.rotary.base`.
template <typename T>
bool differ(const std::optional<T>& a, const std::optional<T>& b, Which which,
            std::string* where = nullptr);
/// The same of lists.
template <typename T>
bool differ(const std::vector<T>& a, const std::vector<T>& b, Which which,
            std::string* where = nullptr);
/// The same of alternatives.
template <typename... T>
bool differ(const std::variant<T...>& a, const std::variant<T...>& b, Which which,
            std::string* where = nullptr);
/// The same of a struct with a list, and of values that have ==.
template <typename T>
bool differ(const T& a, const T& b, Which which, std::string* where = nullptr) {
  if constexpr (IsListed<T>::value) {
    return any_of_pairs(a, b, which,
                        [&](const char* names, std::size_t index, const auto& x, const auto& y) {
                          if (!differ(x, y, which, where)) return false;
                          if (where != nullptr) where->insert(0, "." + field_name(names, index));
                          return true;
                        });
  } else if constexpr (std::is_floating_point_v<T>) {
    return !(a == b || (a != a && b != b));
  } else if constexpr (std::is_empty_v<T>) {
    return false;
  } else {
    return !(a == b);
  }
}
template <typename T>
bool differ(const std::optional<T>& a, const std::optional<T>& b, Which which, std::string* where) {
  return a.has_value() != b.has_value() || (a && differ(*a, *b, which, where));
}
template <typename T>
bool differ(const std::vector<T>& a, const std::vector<T>& b, Which which, std::string* where) {
  if (a.size() != b.size()) return true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!differ(a[i], b[i], which, where)) continue;
    if (where != nullptr) where->insert(0, "[" + std::to_string(i) + "]");
    return true;
  }
  return false;
}
template <typename... T>
bool differ(const std::variant<T...>& a, const std::variant<T...>& b, Which which,
            std::string* where) {
  if (a.index() != b.index()) return true;
  return std::visit(
      [&](const auto& own) {
        return differ(own, std::get<std::decay_t<decltype(own)>>(b), which, where);
      },
      a);
}

}  // namespace fields
}  // namespace posenc
