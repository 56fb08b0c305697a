#pragma once

#include "text/component.h"
#include "text/regex/regex.h"

namespace posenc::text {

/// The `pattern` of a component: {"String": s} or {"Regex": s}. Throws TokenizerError.
Pattern component_pattern(const Component& component);

}  // namespace posenc::text
