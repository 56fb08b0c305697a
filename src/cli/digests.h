#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weights/manifest/open_weights.h"

namespace posenc::cli {

/// SHA-256 of each tensor's contiguous little-endian bytes, in the manifest's order; tied tensors
/// are read once. Calls `progress(bytes, of)` as bytes are read. Throws WeightsError.
std::vector<std::string> digests(const io::OpenWeights& weights,
                                 const std::function<void(uint64_t bytes, uint64_t of)>& progress);

}  // namespace posenc::cli
