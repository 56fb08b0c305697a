#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/platform/atomic_file.h"
#include "base/platform/file.h"
#include "posenc/weights/error.h"

namespace posenc::io {

using platform::AtomicFile;
using platform::FileStamp;
using platform::may_exist;

/// An error of the operating system, as the type that all reading and writing of weights throws.
WeightsError weights_error(const platform::FileError& error);

/// Runs `work`, and adds the file to any error of the operating system and any WeightsError.
template <typename Work>
auto in_file(const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const platform::FileError& error) {
    throw weights_error(error).in_file(path);
  } catch (const WeightsError& error) {
    throw error.in_file(path);
  }
}

/// The same, with the public function.
template <typename Work>
auto in_context(const char* function, const std::string& path, Work&& work) {
  try {
    return in_file(path, work);
  } catch (const WeightsError& error) {
    throw error.in_function(function);
  }
}

/// A regular file, opened for reading. Opening anything else (a directory, a FIFO, a device) fails
/// at once instead of blocking. A small file is read whole, in one call. Bytes in memory can
/// replace a file. Throws WeightsError.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  /// A file made of `bytes`, which have to outlive it; its path is empty.
  static InputFile of_bytes(std::string_view bytes) { return InputFile(bytes, nullptr); }
  /// A part of `whole` as a file. It has to lie inside `whole`, which has to outlive it.
  static InputFile part_of(const InputFile& whole, uint64_t offset, uint64_t size) {
    return InputFile(whole, offset, size);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  uint64_t size() const noexcept { return stamp_.size; }
  /// The state of the file when it was opened.
  const FileStamp& stamp() const noexcept { return stamp_; }

  /// Whether the file is as it was when it was opened; always true of one that was read whole then.
  bool is_unchanged() const;

  /// Reads exactly `count` bytes from `offset` on; Truncated if the file has become shorter.
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
  std::string whole_;  // the content of a small file
  std::string_view bytes_;
  platform::Descriptor file_;              // empty for bytes in memory
  const InputFile* whole_file_ = nullptr;  // for a part, which begins there at `begin_`
  uint64_t begin_ = 0;
  FileStamp stamp_;
};

/// The whole text of a small file. Throws WeightsError, also for one of more than `most` bytes.
std::string read_text(const std::string& path, uint64_t most);

/// The little-endian integer at `at`; the caller has checked the bounds.
template <typename Integer>
Integer little_endian(std::string_view bytes, std::size_t at) {
  uint64_t value = 0;
  for (std::size_t i = sizeof(Integer); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return static_cast<Integer>(value);
}

}  // namespace posenc::io
