#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace posenc::text::unicode {

struct Range {
  uint32_t first, last;
};

/// What the properties Alphabetic, Uppercase and Lowercase of 16.0 have beside the categories L and
/// Nl, Lu, and Ll, in ascending order.
extern const Range kOtherAlphabetic[250];
extern const Range kOtherUppercase[5];
extern const Range kOtherLowercase[28];

/// A property of 16.0 whose characters follow from no category. `name` is in small letters, without
/// signs.
struct RangeProperty {
  std::string_view name;
  const Range* ranges;  ///< in ascending order
  std::size_t count;
};

/// Those of emoji: Emoji, Emoji_Presentation and so on.
extern const RangeProperty kEmojiProperties[5];

}  // namespace posenc::text::unicode
