#pragma once

#include "posenc/models/sentence_stage.h"

namespace posenc {

/// Whether two stages compute the same, apart from their weights.
bool are_same(const sentence::Stage& a, const sentence::Stage& b);

}  // namespace posenc
