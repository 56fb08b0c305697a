#pragma once

#include "io/manifest/open_weights.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// Every tensor, on the CPU. Each storage is read once, so that what shares one shares it still.
StateDict all_tensors(const OpenWeights& weights);

}  // namespace posenc::io
