#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace posenc::text::unicode {

/// The values that `runs` stand for: pairs of a value and how often it follows itself. Zeros fill
/// the rest.
template <std::size_t kCount, std::size_t kRuns>
consteval std::array<uint8_t, kCount> expand(const uint8_t (&runs)[kRuns]) {
  static_assert(kRuns % 2 == 0);
  std::array<uint8_t, kCount> values{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < kRuns; i += 2) {
    for (int times = runs[i + 1]; times >= 0; --times) values[at++] = runs[i];
  }
  return values;
}

}  // namespace posenc::text::unicode
