#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "platform/file.h"
#include "posenc/io/error.h"

namespace posenc::io {

using platform::FileStamp;

/// A regular file, opened for reading. Opening anything else (a directory, a FIFO, a device) fails
/// at once instead of blocking. A small one is read whole, in one call. Bytes in memory can stand
/// in for a file. Throws WeightsError.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  /// The bytes have to outlive the object; its path is empty.
  static InputFile of_bytes(std::string_view bytes) { return InputFile(bytes, nullptr); }
  /// Bytes of `whole`, which have to lie inside of it and which it has to outlive, as a file.
  static InputFile part_of(const InputFile& whole, uint64_t offset, uint64_t size) {
    return InputFile(whole, offset, size);
  }
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
  InputFile(const InputFile& whole, uint64_t offset, uint64_t size)
      : path_(whole.path_), whole_file_(&whole), begin_(offset) {
    stamp_ = whole.stamp_;
    stamp_.size = size;
  }
  void open();
  void check_holes(uint64_t offset, std::size_t count) const;

  std::string path_;
  std::string whole_;  // of a small file
  std::string_view bytes_;
  platform::Descriptor file_;              // bytes in memory have none
  const InputFile* whole_file_ = nullptr;  // of a part, which begins there at `begin_`
  uint64_t begin_ = 0;
  FileStamp stamp_;
};

}  // namespace posenc::io
