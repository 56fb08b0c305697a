#include "base/platform/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace posenc::platform {
namespace {

// One call moves at most 2 GiB - 4 KiB on Linux; other systems refuse more than INT_MAX.
constexpr std::size_t kLargestRead = std::size_t{1} << 30;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

FileStamp stamp_from(const struct stat& status) {
#ifdef __APPLE__
  const timespec& changed = status.st_mtimespec;
#else
  const timespec& changed = status.st_mtim;
#endif
  return {static_cast<uint64_t>(status.st_dev), status.st_ino,
          static_cast<uint64_t>(status.st_size), changed.tv_sec, changed.tv_nsec};
}

}  // namespace

FileError system_error(const std::string& what) {
  const int reason = errno;
  const bool missing = reason == ENOENT || reason == ENOTDIR;
  const bool too_many = reason == EMFILE || reason == ENFILE;  // a thousand shards, say
  return {missing ? FileError::Kind::NotFound : FileError::Kind::Other,
          what + ": " + std::generic_category().message(reason),
          too_many ? "raise the limit of open files (ulimit -n)" : ""};
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = other.release();
  }
  return *this;
}

void Descriptor::close() {
  if (number_ >= 0) ::close(release());
}

int Descriptor::release() { return std::exchange(number_, -1); }

bool may_exist(const std::string& path) {
  std::error_code unknown;                        // such as a link to itself
  return path.find('\0') == std::string::npos &&  // where the system would end it
         (std::filesystem::exists(path, unknown) || unknown);
}

FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? stamp_from(status) : FileStamp();
}

FileStamp stamp_of(const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw system_error("cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    throw FileError(FileError::Kind::NotRegular,
                    std::string("must be a regular file. Got ") + kind_of(status.st_mode));
  }
  return stamp_from(status);
}

void check_path(const std::string& path) {
  if (path.find('\0') == std::string::npos) return;
  throw FileError(FileError::Kind::NotFound, "must be a path without a zero byte");
}

Descriptor open_to_read(const std::string& path) {
  check_path(path);
  // O_NONBLOCK: opening a FIFO without a writer would wait forever.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) throw system_error("cannot be opened");
  return file;
}

std::size_t read_at(const Descriptor& file, uint64_t offset, void* into, std::size_t count) {
  auto* const out = static_cast<char*>(into);
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::pread(file.number(), out + done, std::min(count - done, kLargestRead),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("cannot be read at byte " + std::to_string(offset + done));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::optional<uint64_t> stored_bytes(const Descriptor& file, uint64_t begin, uint64_t end,
                                     uint64_t enough) {
  uint64_t stored = 0;
  for (uint64_t at = begin; stored < enough;) {
    const off_t data = ::lseek(file.number(), static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno != ENXIO) return std::nullopt;
    if (data < 0 || static_cast<uint64_t>(data) >= end) break;
    const off_t hole = ::lseek(file.number(), data, SEEK_HOLE);
    if (hole <= data) return std::nullopt;
    at = std::min(static_cast<uint64_t>(hole), end);
    stored += at - static_cast<uint64_t>(data);
  }
  return stored;
}

}  // namespace posenc::platform
