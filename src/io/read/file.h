#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "posenc/io/error.h"

// Files without LibTorch: this folder is bounded, small, and can be fuzzed alone.
namespace posenc::io {

/// "what: the system's reason" for the current errno; code Io, or NotFound.
WeightsError system_error(const std::string& what);

/// Which file stands under a name, and in which state: one that was written to since differs.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t seconds = 0, nanoseconds = 0;  ///< of its last change

  bool operator==(const FileStamp&) const = default;
};

/// Of the file of that name; nothing but zeros where there is none.
FileStamp stamp_of(const std::string& path);

/// A regular file, opened for reading. Opening anything else (a directory, a FIFO, a device) fails
/// at once instead of blocking. A small one is read whole, in one call. Bytes in memory can stand
/// in for a file. Throws WeightsError.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  /// The bytes have to outlive the object; its path is empty.
  static InputFile of_bytes(std::string_view bytes) { return InputFile(bytes, nullptr); }
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return stamp_.size; }
  /// As it was when it was opened.
  const FileStamp& stamp() const noexcept { return stamp_; }

  /// Exactly `count` bytes from `offset` on; a file that has become shorter is Truncated.
  void read(uint64_t offset, void* into, std::size_t count) const;
  std::string read(uint64_t offset, std::size_t count) const;

 private:
  InputFile(std::string_view bytes, std::nullptr_t) : bytes_(bytes) { stamp_.size = bytes.size(); }
  void examine();
  void read_whole();
  void check_holes(std::size_t count) const;

  std::string path_;
  std::string whole_;  // of a small file
  std::string_view bytes_;
  int descriptor_ = -1;  // of a file; bytes in memory have none
  FileStamp stamp_;
  uint64_t on_disk_ = 0;  // bytes without holes, where the file system tells
};

}  // namespace posenc::io
