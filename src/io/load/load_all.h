#pragma once

#include "io/manifest/open_weights.h"
#include "posenc/io/state_dict.h"

namespace posenc::io {

/// Every tensor, on the CPU. Each storage is read once, so that tensors that share one still do.
StateDict all_tensors(const OpenWeights& weights);

}  // namespace posenc::io
