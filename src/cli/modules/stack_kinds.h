#pragma once

#include <vector>

#include "cli/modules/kinds.h"

namespace posenc::cli {

/// The rows of the registry for modules made of attention layers.
std::vector<Kind> stack_kinds();

}  // namespace posenc::cli
