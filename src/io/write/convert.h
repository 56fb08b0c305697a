#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/open_weights.h"

namespace posenc::io {

/// Writes the tensors of `weights` as the safetensors file `path`, all or nothing, in some 16 MiB
/// of memory: dtypes are kept, views become contiguous, tied tensors are written under each name.
/// What is no dense tensor is left out. `progress(bytes, of)` is called as bytes are written.
/// Returns the bytes of all tensors. Throws WeightsError.
uint64_t write_as_safetensors(const OpenWeights& weights, const std::string& path,
                              const std::function<void(uint64_t bytes, uint64_t of)>& progress);

}  // namespace posenc::io
