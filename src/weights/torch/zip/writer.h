#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weights/common/file.h"

namespace posenc::io {

/// Writes a zip archive as torch.save does: stored entries below one root folder, each entry's
/// bytes aligned to 64, with correct checksums, and zip64 where sizes require it.
class ZipWriter {
 public:
  ZipWriter(AtomicFile& file, std::string root) : file_(file), root_(std::move(root)) {}

  void add(const std::string& name, const void* data, uint64_t size);
  void add(const std::string& name, const std::string& text) {
    add(name, text.data(), text.size());
  }
  /// Writes the directory; nothing can be added after it.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint32_t crc;
    uint64_t size;
    uint64_t offset;  // of its local header
  };

  void write(const std::string& bytes) { file_.write(bytes.data(), bytes.size()); }

  AtomicFile& file_;
  std::string root_;
  std::vector<Entry> entries_;
};

}  // namespace posenc::io
