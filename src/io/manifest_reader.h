#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "io/read/file.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// Bytes of all tensors when each is contiguous.
uint64_t total_bytes(const Manifest& manifest);

/// Streams the tensors of a manifest from its files, of which one is open at a time.
class ManifestReader {
 public:
  /// `manifest` has to outlive the reader.
  explicit ManifestReader(const Manifest& manifest) : manifest_(manifest) {}

  /// See stream_tensor().
  void stream(const ManifestTensor& tensor,
              const std::function<void(const char* data, std::size_t count)>& take);

 private:
  const InputFile& file(std::size_t number);

  const Manifest& manifest_;
  std::unique_ptr<InputFile> file_;
  std::size_t number_ = 0;  // of the open file
};

}  // namespace posenc::io
