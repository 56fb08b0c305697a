#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/base/atomic_file.h"

namespace posenc::io {

/// A zip archive as torch.save writes it: stored entries below one root folder, each entry's bytes
/// on a multiple of 64, their checksums right, zip64 where sizes ask for it.
class ZipWriter {
 public:
  ZipWriter(AtomicFile& file, std::string root) : file_(file), root_(std::move(root)) {}

  void add(const std::string& name, const void* data, uint64_t size);
  void add(const std::string& name, const std::string& text) {
    add(name, text.data(), text.size());
  }
  /// The directory; nothing can be added after it.
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
