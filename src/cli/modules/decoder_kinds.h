#pragma once

#include <vector>

#include "cli/modules/kinds.h"

namespace posenc::cli {

/// Rows for the parts of decoder-only models: norms, feed-forward networks, rotary embeddings.
std::vector<Kind> decoder_kinds();

}  // namespace posenc::cli
