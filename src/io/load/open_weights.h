#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/read/file.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// A manifest and its files, opened. They belong together: a file that is replaced between the
/// two would be read at another one's offsets.
struct OpenWeights {
  Manifest manifest;
  std::vector<std::unique_ptr<InputFile>> files;

  /// Where a tensor's storage begins, and in which file.
  const InputFile& file_of(const ManifestTensor& tensor) const {
    return *files[manifest.storages[tensor.storage].file];
  }
  uint64_t start_of(const ManifestTensor& tensor) const {
    return manifest.storages[tensor.storage].offset;
  }
};

/// Throws WeightsError.
OpenWeights open_weights(const std::string& path);

}  // namespace posenc::io
