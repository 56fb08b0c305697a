#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::io {

/// The number of bytes before the first that does not belong to a character in UTF-8: no overlong
/// forms, no surrogates, nothing beyond U+10FFFF.
std::size_t utf8_prefix(std::string_view text);

/// Whether all of `text` is UTF-8.
inline bool is_utf8(std::string_view text) { return utf8_prefix(text) == text.size(); }

/// At most `most` bytes of `text`, followed by dots if it was longer. The result is always UTF-8:
/// if the text is not, each byte outside ASCII becomes a question mark.
std::string shortened(std::string_view text, std::size_t most);

/// `text` from a file, made safe for a terminal: control characters become '?'.
std::string printable(std::string_view text);

/// The same for a message: quoted and shortened.
std::string in_quotes(std::string_view text);

/// `text` with the letters of ASCII in lower case, whatever the locale.
std::string lower_case(std::string text);

/// 'a', 'b' and 'c'.
std::string in_quotes_each(const std::vector<std::string>& texts);

/// A value of JSON in messages: its text, shortened.
template <typename Json>
std::string shown(const Json& value) {
  constexpr std::size_t kMost = 120;  // in bytes
  if (value.is_number_float() && !std::isfinite(value.template get<double>())) {
    const double number = value.template get<double>();
    return std::isnan(number) ? "NaN" : number < 0 ? "-Infinity" : "Infinity";
  }
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace), kMost);
}

}  // namespace posenc::io
