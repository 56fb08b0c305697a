#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/platform/file.h"

namespace posenc::platform {

/// The prefix of the names of temporary files that this machine writes.
std::string temporary_prefix();

/// Replaces the file at `path` once its new content is complete: written to an unnamed file (or,
/// where there are none, under a temporary name in the same folder), synced, given a
/// name, renamed. `path` keeps its old content until commit(), and a file that is never committed
/// leaves nothing. A temporary file left by a killed process is removed by the next process that
/// writes to the folder: at once if it is from this machine, after a day if it is from another one
/// (or from before a restart).
///
/// A symbolic link is kept, and the file that it points to is written, even if that does not exist
/// yet. A file that may not be written to is not replaced either. A new file gets mode, group and
/// owner of the old one as far as the process may set them, without setuid, setgid and sticky bits;
/// access control lists and other attributes are not kept, and another hard link keeps the old
/// content. Throws FileError.
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
  void give_name();

  std::string target_;  // `path`, or the target of the symbolic link
  std::string folder_;
  std::string temporary_;  // empty while there is no name to remove
  int descriptor_ = -1;
  uint64_t written_ = 0;
};

}  // namespace posenc::platform
