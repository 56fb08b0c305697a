#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/file.h"

namespace posenc::platform {

/// What the names of temporary files of this machine begin with.
std::string temporary_prefix();

/// A file that replaces `path` only when it is complete: written without a name (or, where the file
/// system cannot, under a temporary one in the same folder), synced, named, renamed. Until commit()
/// renames, `path` keeps its old content. A file that is never committed leaves nothing; what a
/// killed process may leave is removed by the next one that writes in the folder: one of the same
/// machine at once, one of another (or from before a restart) when a day has passed.
///
/// A symbolic link stays, and the file that it leads to is written, even where there is none yet. A
/// file that may not be written to is not replaced either. A new file keeps mode, group and owner
/// of the old one as far as the process may set them, without setuid, setgid and sticky bits;
/// access lists and other attributes are not kept, and another hard link keeps the old content.
/// Throws FileError.
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
  void open_unnamed(unsigned mode);
  void open_named(unsigned mode);

  std::string target_;  // `path`, or the file that it leads to as a symbolic link
  std::string folder_;
  std::string temporary_;  // empty while there is no name to remove
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

}  // namespace posenc::platform
