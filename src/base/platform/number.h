#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace posenc::platform {

/// The number that the whole of `text` denotes in C++'s notation, whatever the program's locale:
/// no blanks, no plus sign, no hexadecimal digits; a double may be `inf` or `nan`, the latter
/// without a payload in parentheses. nullopt if
/// `text` is no such number, has other characters after it, or exceeds the type's range, as a
/// double does whose value would round to zero.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  static_assert(std::is_integral_v<Number>, "an integer, or a double by the specialization");
  Number value{};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

/// Does without std::from_chars, which libc++ has for double only since LLVM 20.
template <>
std::optional<double> parse_number<double>(std::string_view text);

}  // namespace posenc::platform
