#pragma once

#include <cstdint>

namespace posenc::text::unicode {

struct Range {
  uint32_t first, last;
};

/// What the properties Alphabetic, Uppercase and Lowercase of 16.0 have beside the categories L and
/// Nl, Lu, and Ll, in ascending order.
extern const Range kOtherAlphabetic[250];
extern const Range kOtherUppercase[5];
extern const Range kOtherLowercase[28];

}  // namespace posenc::text::unicode
