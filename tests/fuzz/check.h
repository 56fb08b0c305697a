#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "posenc/weights/error.h"
#include "posenc/weights/manifest.h"
#include "weights/common/file.h"
#include "weights/common/file_view.h"

// Properties of every manifest that a reader returns, whatever the bytes are.
namespace posenc::testing {

/// A guarantee of the readers that a file could violate.
class InvariantViolation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void promise(bool kept, const char* what) {
  if (!kept) throw InvariantViolation(what);
}

__extension__ typedef unsigned __int128 Wide;  // sums of 64-bit sizes and strides fit

/// Extent of a view in elements, from the start of its storage; 0 if it has no elements.
inline Wide extent(const ManifestTensor& tensor) {
  auto last = static_cast<Wide>(tensor.offset);
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return 0;
    last += static_cast<Wide>(tensor.sizes[i] - 1) * static_cast<Wide>(tensor.strides[i]);
  }
  return last + 1;
}

/// Throws InvariantViolation if the manifest of a file of `file_bytes` bytes violates a guarantee.
inline void check_manifest(const Manifest& manifest, uint64_t file_bytes) {
  for (const auto& storage : manifest.storages) {
    promise(storage.file < manifest.files.size(), "a file of the list");
    promise(storage.offset <= file_bytes && storage.bytes <= file_bytes - storage.offset,
            "storages lie inside the file");
  }
  const auto negative = [](int64_t number) { return number < 0; };
  std::unordered_set<std::string> names;
  for (const auto& tensor : manifest.tensors) {
    promise(names.insert(tensor.name).second, "each name once");
    promise(tensor.storage < manifest.storages.size(), "a storage of the list");
    promise(tensor.sizes.size() == tensor.strides.size(), "a stride for each size");
    promise(tensor.sizes.size() <= 64, "at most 64 dimensions");
    promise(tensor.offset >= 0, "no negative offset");
    promise(std::none_of(tensor.sizes.begin(), tensor.sizes.end(), negative), "no negative size");
    promise(std::none_of(tensor.strides.begin(), tensor.strides.end(), negative),
            "no negative stride");
    promise(extent(tensor) * static_cast<unsigned>(item_size(tensor.dtype)) <=
                manifest.storages[tensor.storage].bytes,
            "tensors lie inside their storages");
  }
}

/// The same, and also reads the tensors that are not too large.
inline void check_manifest(const Manifest& manifest, const io::InputFile& file) {
  check_manifest(manifest, file.size());
  uint64_t left = uint64_t{1} << 20;
  for (const auto& tensor : manifest.tensors) {
    try {
      const uint64_t count = io::contiguous_bytes(tensor);
      if (count > left) continue;
      const std::shared_ptr<const io::InputFile> not_owned(std::shared_ptr<void>(), &file);
      io::stream_tensor(io::view_of(not_owned, manifest.storages[tensor.storage].offset, tensor),
                        tensor.name, [&](const char*, std::size_t got) { left -= got; });
    } catch (const WeightsError&) {  // for a negative bool
    }
  }
}

}  // namespace posenc::testing
