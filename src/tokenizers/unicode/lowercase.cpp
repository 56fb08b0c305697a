#include "tokenizers/unicode/lowercase.h"

#include <algorithm>

#include "tokenizers/unicode/unicode.h"

namespace posenc::text::unicode {

Lower lowercase(char32_t c) {
  if (c < 0x80) return {{c >= U'A' && c <= U'Z' ? c + 32 : c}, 1};
  if (!has(c, kHasLower)) return {{c}, 1};
  if (c == 0x130) return {{U'i', 0x307}, 2};  // the only one of two characters
  const LowerRange* range = std::partition_point(kLowerRanges, kLowerRanges + kLowerRangeCount,
                                                 [c](const LowerRange& r) { return r.last < c; });
  return {{static_cast<char32_t>(static_cast<int32_t>(c) + range->distance)}, 1};
}

}  // namespace posenc::text::unicode
