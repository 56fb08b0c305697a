#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace posenc::train {

/// 45600.4 as `45,600`; not negative.
inline std::string grouped(double number) {
  std::string text = fmt::format("{:.0f}", number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

}  // namespace posenc::train
