#pragma once

#include <cstddef>
#include <string>

#include "io/read/file.h"

namespace posenc::io {

/// A file that replaces `path` only when it is complete: written under a temporary name in the
/// same folder, synced, renamed. Until commit() has returned, `path` keeps its old content, and a
/// file that is never committed is removed by the destructor. Throws WeightsError.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t count);
  void commit();

 private:
  std::string target_;  // `path`, or the file that it is a symbolic link to
  std::string folder_;
  std::string temporary_;  // empty once there is nothing to remove
  int descriptor_ = -1;
};

}  // namespace posenc::io
