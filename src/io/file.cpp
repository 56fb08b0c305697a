#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace posenc::io {
namespace {

// One call moves at most 2 GiB - 4 KiB on Linux; other systems refuse more than INT_MAX.
constexpr std::size_t kLargestRead = std::size_t{1} << 30;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 120;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

FileError system_error(const std::string& what) {
  return FileError(what + ": " + std::generic_category().message(errno));
}

InputFile::InputFile(const std::string& path)
    // O_NONBLOCK: opening a FIFO without a writer would wait for ever.
    : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0) throw system_error("cannot be opened");
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    const FileError error = system_error("cannot be examined");
    ::close(descriptor_);
    throw error;
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw FileError(std::string("must be a regular file. Got ") + kind_of(status.st_mode));
  }
  if (status.st_size == 0) {
    ::close(descriptor_);
    throw FileError("the file is empty");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(uint64_t offset, void* into, std::size_t count) const {
  auto* out = static_cast<char*>(into);
  while (count > 0) {
    const ssize_t got =
        ::pread(descriptor_, out, std::min(count, kLargestRead), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("cannot be read at byte " + std::to_string(offset));
    if (got == 0) {
      throw FileError("the file ended at byte " + std::to_string(offset) + " of the " +
                      std::to_string(size_) + " that it had when it was opened");
    }
    out += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

std::string InputFile::read(uint64_t offset, std::size_t count) const {
  std::string bytes(count, '\0');
  read(offset, bytes.data(), count);
  return bytes;
}

}  // namespace posenc::io
