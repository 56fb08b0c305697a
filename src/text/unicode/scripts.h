#pragma once

#include <cstddef>
#include <cstdint>

namespace posenc::text::unicode {

/// Characters of one script, up to `last`.
struct ScriptRange {
  uint32_t last;
  uint8_t script;
};

extern const ScriptRange kScriptRanges[];  // in ascending order; the last one ends at U+10FFFF
extern const std::size_t kScriptRangeCount;

}  // namespace posenc::text::unicode
