#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "posenc/weights/manifest.h"
#include "weights/common/file_view.h"

namespace posenc::io {

/// A manifest and the files that it was read from. They belong together: if a file has been
/// replaced since, its bytes would be read at another one's offsets. So a file stays open, and one
/// of many shards, which may be closed and opened again, must not have changed in between.
class OpenWeights {
 public:
  /// How many files are open at most, of a process's thousand descriptors or so.
  static constexpr std::size_t kMostOpen = 256;

  /// Throws WeightsError.
  explicit OpenWeights(const std::string& path);

  Manifest manifest;

  /// The file that holds the tensor's storage. Throws WeightsError if it has been replaced or
  /// written to. Not thread-safe, unlike reading from the file.
  std::shared_ptr<const InputFile> file_of(const ManifestTensor& tensor) const {
    return file(manifest.storages[tensor.storage].file);
  }
  const std::string& path_of(const ManifestTensor& tensor) const {
    return manifest.files[manifest.storages[tensor.storage].file];
  }
  /// The tensor in its file. Throws WeightsError as file_of() does.
  FileView view(const ManifestTensor& tensor) const {
    return view_of(file_of(tensor), manifest.storages[tensor.storage].offset, tensor);
  }

  /// Throws WeightsError if a file that has been read was written to meanwhile, so that what was
  /// read may be a mixture of two states. To be called after the last byte.
  void check_unchanged() const;

  /// Closes all files, which are opened again where they are read. Throws WeightsError as
  /// check_unchanged() does.
  void close() const;

  /// Bytes of all tensors, each taken as contiguous.
  uint64_t total_bytes() const;

  /// See stream_tensor().
  void stream(const ManifestTensor& tensor,
              const std::function<void(const char* data, std::size_t count)>& take) const;

 private:
  using File = std::shared_ptr<const InputFile>;

  bool read_shards(const std::string& index);
  File file(std::size_t number) const;
  void keep(std::size_t number, File file) const;
  void check_unchanged(std::size_t number) const;

  std::vector<FileStamp> stamps_;  // by number, as of the time when the manifest was read
  mutable std::vector<File> files_;
  mutable std::deque<std::size_t> open_;  // numbers of the open files, oldest first
};

}  // namespace posenc::io
