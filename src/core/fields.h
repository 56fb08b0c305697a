#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// The options of a struct, listed once; what compares options goes through the list.
//
// POSENC_FIELDS(Options, (a, b), (c)) lists all TORCH_ARGs of Options and its bases, which lint
// checks: first those that results in eval mode may depend on, then those that none does, such as
// the probability of a dropout. POSENC_MEMBERS(Struct, a, b) lists the members of a struct without
// such functions; with a member too few or too many it does not compile. Both at namespace scope.

// macro(x) of each argument; up to 64.
#define POSENC_PARENTHESES ()
#define POSENC_SCAN(...) __VA_ARGS__
#define POSENC_SCAN_4(...) POSENC_SCAN(POSENC_SCAN(POSENC_SCAN(POSENC_SCAN(__VA_ARGS__))))
#define POSENC_SCAN_16(...) POSENC_SCAN_4(POSENC_SCAN_4(POSENC_SCAN_4(POSENC_SCAN_4(__VA_ARGS__))))
#define POSENC_SCAN_64(...) \
  POSENC_SCAN_16(POSENC_SCAN_16(POSENC_SCAN_16(POSENC_SCAN_16(__VA_ARGS__))))
#define POSENC_EACH(macro, ...) __VA_OPT__(POSENC_SCAN_64(POSENC_EACH_STEP(macro, __VA_ARGS__)))
#define POSENC_EACH_STEP(macro, first, ...) \
  macro(first) __VA_OPT__(POSENC_EACH_NEXT POSENC_PARENTHESES(macro, __VA_ARGS__))
#define POSENC_EACH_NEXT() POSENC_EACH_STEP
#define POSENC_UNPACK(...) __VA_ARGS__

#define POSENC_VISIT_OPTION(name) visit(#name, a.name(), b.name());
#define POSENC_VISIT_MEMBER(name) visit(#name, a.name, b.name);
#define POSENC_FIELDS(Options, read, unread)                                       \
  template <>                                                                      \
  struct posenc::fields::List<Options> {                                           \
    template <typename Value, typename Visit>                                      \
    static void visit_read(Value& a, Value& b, Visit&& visit) {                    \
      POSENC_EACH(POSENC_VISIT_OPTION, POSENC_UNPACK read)                         \
    }                                                                              \
    template <typename Value, typename Visit>                                      \
    static void visit_unread([[maybe_unused]] Value& a, [[maybe_unused]] Value& b, \
                             [[maybe_unused]] Visit&& visit) {                     \
      POSENC_EACH(POSENC_VISIT_OPTION, POSENC_UNPACK unread)                       \
    }                                                                              \
  };
#define POSENC_MEMBERS(Struct, ...)                             \
  template <>                                                   \
  struct posenc::fields::List<Struct> {                         \
    template <typename Value, typename Visit>                   \
    static void visit_read(Value& a, Value& b, Visit&& visit) { \
      [[maybe_unused]] const auto& [__VA_ARGS__] = a;           \
      POSENC_EACH(POSENC_VISIT_MEMBER, __VA_ARGS__)             \
    }                                                           \
    template <typename Value, typename Visit>                   \
    static void visit_unread(Value&, Value&, Visit&&) {}        \
  };

namespace posenc::fields {

/// visit_read(a, b, visit) and visit_unread(a, b, visit) call visit(name, of_a, of_b) for each
/// field; POSENC_FIELDS and POSENC_MEMBERS define it.
template <typename T>
struct List;

template <typename T>
concept Listed = requires { sizeof(List<T>); };

template <typename T>
bool differ(const std::optional<T>& a, const std::optional<T>& b, std::string& where);
template <typename T>
bool differ(const std::vector<T>& a, const std::vector<T>& b, std::string& where);
template <typename... T>
bool differ(const std::variant<T...>& a, const std::variant<T...>& b, std::string& where);

/// Whether two values that have no list are equal. NaN equals NaN.
template <typename T>
struct Equal {
  static bool of(const T& a, const T& b) { return a == b || (a != a && b != b); }
};

/// Whether two values differ in what results in eval mode may depend on. `where` then begins with
/// the name of the first field that differs, such as `.rotary.base`.
template <typename T>
bool differ(const T& a, const T& b, std::string& where) {
  if constexpr (Listed<T>) {
    bool found = false;
    List<T>::visit_read(a, b, [&](const char* name, const auto& x, const auto& y) {
      if (found || !differ(x, y, where)) return;
      found = true;
      where.insert(0, std::string(".") + name);
    });
    return found;
  } else if constexpr (std::is_empty_v<T>) {
    return false;
  } else {
    return !Equal<T>::of(a, b);
  }
}
template <typename T>
bool differ(const std::optional<T>& a, const std::optional<T>& b, std::string& where) {
  return a.has_value() != b.has_value() || (a && differ(*a, *b, where));
}
template <typename T>
bool differ(const std::vector<T>& a, const std::vector<T>& b, std::string& where) {
  if (a.size() != b.size()) return true;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!differ(a[i], b[i], where)) continue;
    where.insert(0, "[" + std::to_string(i) + "]");
    return true;
  }
  return false;
}
template <typename... T>
bool differ(const std::variant<T...>& a, const std::variant<T...>& b, std::string& where) {
  if (a.index() != b.index()) return true;
  return std::visit(
      [&](const auto& own) { return differ(own, std::get<std::decay_t<decltype(own)>>(b), where); },
      a);
}

}  // namespace posenc::fields
