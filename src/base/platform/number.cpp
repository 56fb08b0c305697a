#include "base/platform/number.h"

#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include <cerrno>
#include <cmath>
#include <string>

namespace posenc::platform {
namespace {

// Whether strtod would read what is not C++'s notation of a value: blanks or a plus sign before the
// number, hexadecimal digits, and the payload of a NaN.
bool has_foreign_notation(std::string_view text) {
  return text.find_first_of("+ \t\n\v\f\r") == 0 || text.find_first_of("xX(") != text.npos;
}

}  // namespace

template <>
std::optional<double> parse_number<double>(std::string_view text) {
  if (text.empty() || has_foreign_notation(text)) return std::nullopt;
  static const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string terminated(text);
  char* end = nullptr;
  errno = 0;
  const double value = ::strtod_l(terminated.c_str(), &end, c_locale);
  if (end != terminated.c_str() + terminated.size()) return std::nullopt;
  // ERANGE is also reported for subnormal numbers, which have a value.
  if (errno == ERANGE && (value == 0.0 || std::isinf(value))) return std::nullopt;
  return value;
}

}  // namespace posenc::platform
