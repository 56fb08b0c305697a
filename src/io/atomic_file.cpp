#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
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
constexpr const char* kPrefix = ".posenc-";
constexpr const char* kSuffix = ".tmp";

// A short name of its own, not the target's with a suffix: that one may already have 255 bytes.
std::string temporary_name(const std::string& folder) {
  static std::atomic<unsigned> counter{0};
  return folder + "/" + kPrefix + std::to_string(::getpid()) + "-" + std::to_string(counter++) +
         kSuffix;
}

std::string name_of(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }

// Who writes a temporary file holds a lock on it, which the system releases when the process ends,
// however it ends: a file that can be locked is nobody's.
bool lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

void remove_stale(const std::string& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const int descriptor =
        ::open(entry->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (lock(descriptor)) ::unlink(entry->path().c_str());
    ::close(descriptor);
  }
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
  const std::filesystem::path target = target_;
  folder_ = target.parent_path().string();
  if (folder_.empty()) folder_.push_back('.');
  // The temporary name is short: without this, a name too long would be found out at the very end.
  const long longest = ::pathconf(folder_.c_str(), _PC_NAME_MAX);
  if (longest > 0 && target.filename().string().size() > static_cast<std::size_t>(longest)) {
    errno = ENAMETOOLONG;
    throw system_error("cannot be written");
  }
  remove_stale(folder_);
  open_unnamed();
  if (descriptor_ < 0) open_named();
  if (descriptor_ < 0) throw system_error("cannot be written in folder " + in_quotes(folder_));
  // The new file is as readable as the old one. A file system without modes may refuse: no harm.
  if (replaces) (void)!::fchmod(descriptor_, old.st_mode & 07777);
}

void AtomicFile::open_unnamed() {
#ifdef O_TMPFILE
  const int descriptor = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor < 0) return;
  // It gets its name through /proc, which some sandboxes lack.
  if (::access(name_of(descriptor).c_str(), F_OK) == 0 && lock(descriptor)) {
    descriptor_ = descriptor;
  } else {
    ::close(descriptor);
  }
#endif
}

void AtomicFile::open_named() {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = temporary_name(folder_);
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return;
    struct stat status {};
    (void)lock(descriptor);  // where there are no locks, nobody takes the file for a stale one
    if (::fstat(descriptor, &status) == 0 && status.st_nlink > 0) {
      temporary_ = name;
      descriptor_ = descriptor;
      return;
    }
    ::close(descriptor);  // taken for a stale one, before it was locked
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AtomicFile::write(const void* data, std::size_t count) {
  const auto* in = static_cast<const char*>(data);
  while (count > 0) {
    const ssize_t put = ::write(descriptor_, in, std::min(count, kLargestWrite));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw system_error("cannot be written");
    in += put;
    count -= static_cast<std::size_t>(put);
    written_ += static_cast<uint64_t>(put);
  }
}

void AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) throw system_error("cannot be synced");
  for (int attempt = 0; temporary_.empty(); ++attempt) {
    const std::string name = temporary_name(folder_);
    if (::linkat(AT_FDCWD, name_of(descriptor_).c_str(), AT_FDCWD, name.c_str(),
                 AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
    } else if (errno != EEXIST || attempt == kAttempts) {
      throw system_error("cannot be put in place");
    }
  }
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
    throw system_error("cannot be put in place");
  }
  temporary_.clear();
  sync_folder(folder_);
}

}  // namespace posenc::io
