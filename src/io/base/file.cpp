#include "io/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace posenc::io {
namespace {

// One call moves at most 2 GiB - 4 KiB on Linux; other systems refuse more than INT_MAX.
constexpr std::size_t kLargestRead = std::size_t{1} << 30;

constexpr std::size_t kReadWhole =
    131072;  // copying as much costs less than the calls for its parts

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

FileStamp stamp_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
          status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

}  // namespace

FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? stamp_of(status) : FileStamp();
}

WeightsError system_error(const std::string& what) {
  const int reason = errno;
  const bool missing = reason == ENOENT || reason == ENOTDIR;
  const bool too_many = reason == EMFILE || reason == ENFILE;  // as of a thousand shards
  return {missing ? WeightsErrorCode::NotFound : WeightsErrorCode::Io,
          what + ": " + std::generic_category().message(reason),
          too_many ? "raise the limit of open files (ulimit -n)" : ""};
}

InputFile::InputFile(const std::string& path)
    : path_(path),
      // O_NONBLOCK: opening a FIFO without a writer would wait for ever.
      descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0) throw system_error("cannot be opened").in_file(path);
  try {
    examine();
    if (size() <= kReadWhole) read_whole();
  } catch (const WeightsError& error) {
    ::close(descriptor_);
    throw error.in_file(path);
  }
}

void InputFile::examine() {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw system_error("cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    throw WeightsError(WeightsErrorCode::NotRegular,
                       std::string("must be a regular file. Got ") + kind_of(status.st_mode));
  }
  if (status.st_size == 0) throw WeightsError(WeightsErrorCode::Truncated, "is empty");
  stamp_ = stamp_of(status);
}

// A file of a few KB on disk can be one of many GB: memory for its holes is not to be had. Asked
// where the data lie, a file system that keeps no holes says everywhere; its counts of blocks may
// be zero, or late.
void InputFile::check_holes(uint64_t offset, std::size_t count) const {
  constexpr uint64_t kFree = uint64_t{128} << 20;
  constexpr uint64_t kFactor = 64;  // of zeros that were left out when the file was copied
  if (count <= kFree || descriptor_ < 0) return;
  const uint64_t due = (count - kFree) / kFactor, end = offset + std::min(count, size() - offset);
  uint64_t data = 0;
  for (uint64_t at = offset; data < due;) {
    const off_t begin = ::lseek(descriptor_, static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0 && errno != ENXIO) return;  // it cannot be told
    if (begin < 0 || static_cast<uint64_t>(begin) >= end) break;
    const off_t hole = ::lseek(descriptor_, begin, SEEK_HOLE);
    if (hole <= begin) return;
    at = std::min(static_cast<uint64_t>(hole), end);
    data += at - static_cast<uint64_t>(begin);
  }
  if (data >= due) return;
  throw WeightsError(WeightsErrorCode::LimitExceeded,
                     "must not ask for " + std::to_string(count) + " bytes at once, as it has " +
                         std::to_string(data) + " of them on disk and holes else")
      .in_file(path_);
}

void InputFile::read_whole() {
  whole_ = read(0, size());
  bytes_ = whole_;
  ::close(descriptor_);
  descriptor_ = -1;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(uint64_t offset, void* into, std::size_t count) const {
  if (count == 0) return;
  if (whole_file_ != nullptr && offset <= size() && count <= size() - offset) {
    return whole_file_->read(begin_ + offset, into, count);
  }
  auto* out = static_cast<char*>(into);
  if (descriptor_ < 0 && offset <= size() && count <= size() - offset) {
    std::memcpy(out, bytes_.data() + offset, count);
    return;
  }
  while (count > 0) {
    const ssize_t got = descriptor_ < 0 ? 0
                                        : ::pread(descriptor_, out, std::min(count, kLargestRead),
                                                  static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw system_error("cannot be read at byte " + std::to_string(offset)).in_file(path_);
    }
    if (got == 0) {
      throw WeightsError(WeightsErrorCode::Truncated, "ended at byte " + std::to_string(offset) +
                                                          " of the " + std::to_string(size()) +
                                                          " that it had when it was opened")
          .in_file(path_);
    }
    out += got;
    offset += static_cast<uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

std::string InputFile::read(uint64_t offset, std::size_t count) const {
  whole_file_ != nullptr ? whole_file_->check_holes(begin_ + offset, count)
                         : check_holes(offset, count);
  std::string bytes(count, '\0');
  read(offset, bytes.data(), count);
  return bytes;
}

}  // namespace posenc::io
