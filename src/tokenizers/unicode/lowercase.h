#pragma once

#include <cstddef>
#include <cstdint>

namespace posenc::text::unicode {

/// Characters first, first + step, ... last, whose lower-case forms are `distance` away.
struct LowerRange {
  uint32_t first, last;
  int32_t step, distance;
};

extern const LowerRange kLowerRanges[];  // in ascending order of both ends
extern const std::size_t kLowerRangeCount;

}  // namespace posenc::text::unicode
