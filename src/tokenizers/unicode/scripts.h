#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace posenc::text::unicode {

/// Characters of one script, up to `last`.
struct ScriptRange {
  uint32_t last;
  uint8_t script;
};

extern const ScriptRange kScriptRanges[];  // in ascending order; the last one ends at U+10FFFF
extern const std::size_t kScriptRangeCount;

/// The same of 16.0, with all scripts apart: what regular expressions ask for by name.
extern const ScriptRange kScriptPropertyRanges[];
extern const std::size_t kScriptPropertyRangeCount;

/// A name of a script of kScriptPropertyRanges, in small letters, without signs.
struct ScriptName {
  std::string_view name;
  uint8_t script;
};

extern const ScriptName kScriptNames[];  // in ascending order
extern const std::size_t kScriptNameCount;

}  // namespace posenc::text::unicode
