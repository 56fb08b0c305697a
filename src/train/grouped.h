#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace posenc::train {

/// Formats a non-negative number with thousands separators: 45600.4 as `45,600`.
inline std::string grouped(double number) {
  const std::string digits = fmt::format("{:.0f}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace posenc::train
