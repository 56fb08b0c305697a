#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "posenc/io/manifest.h"

namespace posenc::fuzz {

/// Traps where a manifest breaks what manifest.h promises of one file of `bytes` bytes.
inline void check(const Manifest& manifest, uint64_t bytes) {
  const auto require = [](bool rule) {
    if (!rule) __builtin_trap();
  };
  for (const auto& storage : manifest.storages) {
    require(storage.file < manifest.files.size());
    require(storage.bytes <= bytes && storage.offset <= bytes - storage.bytes);
  }
  std::unordered_set<std::string> names;
  for (const auto& tensor : manifest.tensors) {
    require(names.insert(tensor.name).second);
    require(tensor.storage < manifest.storages.size());
    require(tensor.sizes.size() == tensor.strides.size() && tensor.offset >= 0);
    __int128 last = tensor.offset, count = 1;
    for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
      require(tensor.sizes[i] >= 0 && tensor.strides[i] >= 0);
      last += static_cast<__int128>(tensor.sizes[i] - 1) * tensor.strides[i];
      count *= tensor.sizes[i];
    }
    const uint64_t room = manifest.storages[tensor.storage].bytes;
    require(count == 0 || (last + 1) * item_size(tensor.dtype) <= room);
  }
}

}  // namespace posenc::fuzz
