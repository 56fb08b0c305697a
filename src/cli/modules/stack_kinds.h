#pragma once

#include <vector>

#include "cli/modules/kinds.h"

namespace posenc::cli {

/// The rows of the table of counterparts that are built of attention layers.
std::vector<Kind> stack_kinds();

}  // namespace posenc::cli
