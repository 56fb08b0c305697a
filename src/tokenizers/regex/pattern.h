#pragma once

#include "tokenizers/definition/component.h"
#include "tokenizers/regex/regex.h"

namespace posenc::text {

/// The `pattern` of a component: {"String": s} or {"Regex": s}. Throws TokenizerError.
Pattern component_pattern(const Component& component);

}  // namespace posenc::text
