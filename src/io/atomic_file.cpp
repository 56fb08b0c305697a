#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "io/read/quote.h"

namespace posenc::io {
namespace {

constexpr std::size_t kLargestWrite = std::size_t{1} << 30;
constexpr int kAttempts = 100;

// A short name of its own, not the target's with a suffix: that one may already have 255 bytes.
std::string temporary_name(const std::string& folder) {
  static std::atomic<unsigned> counter{0};
  return folder + "/.posenc-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) +
         ".tmp";
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw system_error("is written, but its folder cannot be opened to sync it");
  const bool failed = ::fsync(descriptor) != 0 && errno != EINVAL;  // not every file system can
  const WeightsError error = system_error("is written, but its folder cannot be synced");
  ::close(descriptor);
  if (failed) throw error;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : target_(path) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) {
    // Replace the file behind the link, as writing through it would, not the link.
    const auto behind = std::filesystem::canonical(path, ignored);
    if (!ignored) target_ = behind.string();
  }
  struct stat old {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode)) {
    throw WeightsError(WeightsErrorCode::NotRegular,
                       "cannot be written: it exists and is not a regular file");
  }
  folder_ = std::filesystem::path(target_).parent_path().string();
  if (folder_.empty()) folder_.push_back('.');

  for (int attempt = 0; descriptor_ < 0 && attempt < kAttempts; ++attempt) {
    temporary_ = temporary_name(folder_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) throw system_error("cannot be written in folder " + in_quotes(folder_));
  // The new file is as readable as the old one. A file system without modes may refuse: no harm.
  if (replaces) (void)!::fchmod(descriptor_, old.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, std::size_t count) {
  const auto* in = static_cast<const char*>(data);
  while (count > 0) {
    const ssize_t put = ::write(descriptor_, in, std::min(count, kLargestWrite));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw system_error("cannot be written");
    in += put;
    count -= static_cast<std::size_t>(put);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) throw system_error("cannot be synced");
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) throw system_error("cannot be written");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    throw system_error("cannot be put in place");
  }
  temporary_.clear();
  sync_folder(folder_);
}

}  // namespace posenc::io
