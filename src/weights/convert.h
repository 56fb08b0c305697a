#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "weights/manifest/open_weights.h"

namespace posenc::io {

/// Whether SaveFormat::ByExtension means SaveFormat::TorchSave for `path`.
inline bool is_torch_save(std::string_view path) {
  return path.ends_with(".pt") || path.ends_with(".pth");
}

/// Throws WeightsError unless the manifest has tensors, all of them can be read, and none are in a
/// container that cannot: otherwise the file written could not replace the original.
void check_convertible(const Manifest& manifest);

/// Writes the tensors of `weights` to the safetensors file `path`, all or nothing, using some 16
/// MiB of memory: dtypes are kept, views become contiguous, tied tensors are written under each
/// name. Bytes of bools are copied unchanged, be they 0, 1 or others, as PyTorch does; only loading
/// refuses them. Everything but dense tensors is left out. Calls `progress(bytes, of)` as bytes are
/// written. Returns the bytes of all tensors. Throws WeightsError.
uint64_t write_as_safetensors(const OpenWeights& weights, const std::string& path,
                              const std::function<void(uint64_t bytes, uint64_t of)>& progress);

}  // namespace posenc::io
