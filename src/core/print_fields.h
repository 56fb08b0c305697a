#pragma once

#include <array>
#include <cstddef>
#include <ostream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "posenc/core/fields.h"

// What pretty_print() of a module writes: its options by their names.

namespace posenc::fields {

/// What the compiler says of a template argument, without its namespaces: `Fourier`.
constexpr std::string_view argument_name(std::string_view function, std::string_view from) {
  function.remove_prefix(function.find(from) + from.size());
  function = function.substr(0, function.find_first_of(";]"));
  return function.substr(function.rfind(':') + 1);
}
template <auto Value>
constexpr std::string_view enumerator_name() {
  return argument_name(__PRETTY_FUNCTION__, "Value = ");
}
template <typename Type>
constexpr std::string_view type_name() {
  return argument_name(__PRETTY_FUNCTION__, "Type = ");
}

/// The name of an enumerator below 32, such as `Fourier`.
template <typename Enum>
std::string_view name_of_enumerator(Enum value) {
  static constexpr auto kNames = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{enumerator_name<static_cast<Enum>(I)>()...};
  }(std::make_index_sequence<32>());
  const auto index = static_cast<std::size_t>(value);
  return index < kNames.size() ? kNames[index] : "?";
}

/// Writes `d_model=8, eps=1e-06`: the fields in which `object` differs from `defaults`.
template <typename T>
void print_fields(std::ostream& stream, const T& object, const T& defaults);

/// Its defaults, where sizes that it asks for are -1; nothing of a struct that asks for others.
template <typename T>
std::optional<T> defaults_of() {
  if constexpr (std::is_default_constructible_v<T>) {
    return T{};
  } else if constexpr (std::is_constructible_v<T, int64_t>) {
    return T(int64_t{-1});
  } else if constexpr (std::is_constructible_v<T, int64_t, int64_t>) {
    return T(int64_t{-1}, int64_t{-1});
  } else {
    return std::nullopt;
  }
}

/// Writes a value: `true`, `GELU`, `[1, 2]`, `none`, `Clamp(right=64)`, `(...)` of a struct whose
/// defaults are unknown. `other`, which may be null, is what it is by default.
template <typename T>
void print_value(std::ostream& stream, const std::optional<T>& value,
                 const std::optional<T>* other);
template <typename T>
void print_value(std::ostream& stream, const std::vector<T>& values, const std::vector<T>* other);
template <typename... T>
void print_value(std::ostream& stream, const std::variant<T...>& value,
                 const std::variant<T...>* other);
template <typename T>
void print_value(std::ostream& stream, const T& value, const T* other) {
  if constexpr (std::is_same_v<T, bool>) {
    stream << (value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    stream << name_of_enumerator(value);
  } else if constexpr (IsListed<T>::value) {
    stream << "(";
    const std::optional<T> own = other == nullptr ? defaults_of<T>() : std::nullopt;
    if (other != nullptr || own) {
      print_fields(stream, value, other != nullptr ? *other : *own);
    } else {
      stream << "...";  // nothing to compare with
    }
    stream << ")";
  } else {
    stream << value;
  }
}
template <typename T>
void print_value(std::ostream& stream, const std::optional<T>& value,
                 const std::optional<T>* other) {
  if (value) {
    print_value(stream, *value, other != nullptr && *other ? &**other : nullptr);
  } else {
    stream << "none";
  }
}
template <typename T>
void print_value(std::ostream& stream, const std::vector<T>& values, const std::vector<T>*) {
  stream << "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    stream << (i > 0 ? ", " : "");
    print_value(stream, static_cast<const T&>(values[i]), static_cast<const T*>(nullptr));
  }
  stream << "]";
}
template <typename... T>
void print_value(std::ostream& stream, const std::variant<T...>& value, const std::variant<T...>*) {
  std::visit(
      [&]<typename Own>(const Own& own) {
        stream << type_name<Own>();
        if constexpr (!std::is_empty_v<Own>)
          print_value(stream, own, static_cast<const Own*>(nullptr));
      },
      value);
}

template <typename T>
void print_fields(std::ostream& stream, const T& object, const T& defaults) {
  bool is_first = true;
  any_of_pairs(object, defaults, Which::All,
               [&](const char* names, std::size_t index, const auto& own, const auto& other) {
                 if (!differ(own, other, Which::All)) return false;
                 stream << (is_first ? "" : ", ") << field_name(names, index) << "=";
                 print_value(stream, own, &other);
                 is_first = false;
                 return false;
               });
}

/// Writes `posenc::LayerNorm(d_model=8, eps=1e-06)`: the options that differ from `defaults`, whose
/// sizes are -1, so that sizes are always written.
template <typename Options>
void print_module(std::ostream& stream, const char* name, const Options& options,
                  const Options& defaults) {
  stream << "posenc::" << name << "(";
  print_fields(stream, options, defaults);
  stream << ")";
}

}  // namespace posenc::fields
