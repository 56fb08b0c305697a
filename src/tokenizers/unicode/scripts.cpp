#include "tokenizers/unicode/scripts.h"

#include <algorithm>

#include "tokenizers/unicode/unicode.h"

namespace posenc::text::unicode {

Script script_of(char32_t c) {
  return std::partition_point(kScriptRanges, kScriptRanges + kScriptRangeCount,
                              [c](const ScriptRange& range) { return range.last < c; })
      ->script;
}

}  // namespace posenc::text::unicode
