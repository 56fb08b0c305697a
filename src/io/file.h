#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

// Files without LibTorch: this layer is bounded, small, and can be fuzzed alone.
namespace posenc::io {

/// What is wrong with a file, without its name. The public functions add that and throw
/// c10::ValueError; see rethrow.h.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `text` from a file, fit for a message: in quotes, shortened, control characters replaced.
std::string in_quotes(std::string_view text);

/// "what: the system's reason" for the current errno.
FileError system_error(const std::string& what);

/// A regular file, opened for reading. Opening anything else (a directory, a FIFO, a device) fails
/// at once instead of blocking.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  uint64_t size() const noexcept { return size_; }

  /// Exactly `count` bytes from `offset` on; a file that has become shorter is an error.
  void read(uint64_t offset, void* into, std::size_t count) const;
  std::string read(uint64_t offset, std::size_t count) const;

 private:
  int descriptor_;
  uint64_t size_ = 0;
};

}  // namespace posenc::io
