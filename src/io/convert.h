#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/manifest/open_weights.h"

namespace posenc::io {

/// Throws WeightsError unless the manifest has tensors, all of which can be read: what would be
/// written could not take its place.
void check_convertible(const Manifest& manifest);

/// Writes the tensors of `weights` as the safetensors file `path`, all or nothing, in some 16 MiB
/// of memory: dtypes are kept, views become contiguous, tied tensors are written under each name.
/// Bytes of bools are copied as they are, 0, 1 or others, as PyTorch does; only loading them is
/// refused. What is no dense tensor is left out. `progress(bytes, of)` is called as bytes are
/// written. Returns the bytes of all tensors. Throws WeightsError.
uint64_t write_as_safetensors(const OpenWeights& weights, const std::string& path,
                              const std::function<void(uint64_t bytes, uint64_t of)>& progress);

}  // namespace posenc::io
