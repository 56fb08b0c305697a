#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/read/file.h"

namespace posenc::io {

/// A file that replaces `path` only when it is complete: written without a name (or, where the file
/// system cannot, under a temporary one in the same folder), synced, named, renamed. Until commit()
/// renames, `path` keeps its old content. A file that is never committed leaves nothing; what a
/// killed process may leave is removed by the next one that writes in the folder.
/// Throws WeightsError.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t count);
  uint64_t written() const noexcept { return written_; }
  void commit();

 private:
  void open_unnamed();
  void open_named();

  std::string target_;  // `path`, or the file that it is a symbolic link to
  std::string folder_;
  std::string temporary_;  // empty while there is no name to remove
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

}  // namespace posenc::io
