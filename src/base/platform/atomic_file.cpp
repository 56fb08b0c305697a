#include "base/platform/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace posenc::platform {
namespace {

constexpr std::size_t kLargestWrite = std::size_t{1} << 30;
constexpr int kAttempts = 100;
constexpr const char* kPrefix = ".posenc-";
constexpr const char* kSuffix = ".tmp";

using HostText = std::array<char, 64>;

// Writes the system's random name for the time since it was started; returns its length, 0 if there
// is none.
std::size_t read_boot_id(HostText& text) {
#ifdef __APPLE__
  std::size_t size = text.size();
  return ::sysctlbyname("kern.bootsessionuuid", text.data(), &size, nullptr, 0) == 0 ? size : 0;
#else
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? ::read(file.number(), text.data(), text.size()) : 0;
  return static_cast<std::size_t>(std::max<ssize_t>(size, 0));
#endif
}

// Distinguishes this host and boot from others that write in the folder, over a network.
std::string host_id() {
  std::string id;
  HostText text;
  std::size_t size = read_boot_id(text);
  if (size == 0 && ::gethostname(text.data(), text.size()) == 0) {
    size = ::strnlen(text.data(), text.size());
  }
  constexpr std::size_t kEnough = 12;
  for (std::size_t i = 0; i < size && id.size() < kEnough; ++i) {
    if (std::isalnum(static_cast<unsigned char>(text[i])) != 0) id += text[i];
  }
  return id;
}

// A short name of its own, not the target's with a suffix: the target's may already have 255 bytes.
std::string temporary_name(const std::string& folder) {
  static std::atomic<unsigned> counter{0};
  return folder + "/" + temporary_prefix() + std::to_string(::getpid()) + "-" +
         std::to_string(counter++) + kSuffix;
}

#ifdef O_TMPFILE  // Linux has files without a name, which get one through /proc
std::string proc_path(int descriptor) { return "/proc/self/fd/" + std::to_string(descriptor); }
#endif

// Waits until the disk has the file.
bool sync_file(int descriptor) {
#ifdef F_FULLFSYNC  // macOS: fsync hands the data to the disk, which may still keep it in its cache
  if (::fcntl(descriptor, F_FULLFSYNC) == 0) return true;
  if (errno != ENOTSUP && errno != EINVAL && errno != ENOTTY)
    return false;  // not every file system can
#endif
  return ::fsync(descriptor) == 0;
}

// The writer of a temporary file holds a lock on it, which the system releases when the process
// ends, for whatever reason: a file that can be locked has no writer.
bool lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

// Another host's locks may not be visible here: its file counts as being written until it has not
// been written to for a day.
bool is_old(int descriptor) {
  constexpr time_t kDay = time_t{24} * 60 * 60;
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_mtime < ::time(nullptr) - kDay;
}

void remove_stale(const std::string& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    const int descriptor =
        ::open(entry->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    const bool own = name.starts_with(temporary_prefix());
    if ((own || is_old(descriptor)) && lock(descriptor)) ::unlink(entry->path().c_str());
    ::close(descriptor);
  }
}

// The file that a save to `path` replaces: a link's target, even if that does not exist yet.
std::string resolve_links(std::filesystem::path path) {
  constexpr int kMost = 40;  // the kernel's own limit
  std::error_code is_no_link;
  for (int i = 0; i < kMost; ++i) {
    const auto target = std::filesystem::read_symlink(path, is_no_link);
    if (is_no_link) return path.string();
    path = path.parent_path() / target;
  }
  errno = ELOOP;
  throw system_error("cannot be written");
}

// A file that is a mount point itself, as in containers, cannot be replaced by rename.
bool is_mount([[maybe_unused]] const std::string& path) {
#ifdef STATX_ATTR_MOUNT_ROOT
  struct statx status {};
  return ::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &status) == 0 &&
         (status.stx_attributes_mask & status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
  return false;
#endif
}

constexpr const char* kMountRemedy =
    "it is mounted as a single file (as a container's volume may be), and writing into it would "
    "not be all or nothing: mount its folder instead";

FileError rename_error() {
  const bool busy = errno == EBUSY;
  const FileError error = system_error("cannot be put in place");
  return busy ? FileError(error.kind(), error.what(), kMountRemedy) : error;
}

// Throws unless `path`, which exists, may be replaced: refuses whatever opening it for writing, as
// other programs do, would refuse.
void check_replaceable(const std::string& path, const struct stat& old) {
  if (!S_ISREG(old.st_mode)) {
    throw FileError(FileError::Kind::NotRegular,
                    "cannot be written: it exists and is not a regular file");
  }
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
    const FileError error = system_error("exists and may not be written to");
    throw FileError(error.kind(), error.what(), "make it writable or save under another name");
  }
  if (is_mount(path)) {
    errno = EBUSY;
    throw rename_error();
  }
}

// Gives the new file the owner, group and mode of the old one, as far as permitted. Bits that let
// programs run as their owner are not for data. A file system without modes may refuse, harmlessly.
void copy_owner_and_mode(int descriptor, const struct stat& old) {
  constexpr auto kKeep = static_cast<uid_t>(-1);
  mode_t mode = old.st_mode & 0777;
  struct stat now {};
  (void)!::fstat(descriptor, &now);
  if (now.st_uid != old.st_uid) (void)!::fchown(descriptor, old.st_uid, kKeep);
  if (now.st_gid != old.st_gid && ::fchown(descriptor, kKeep, old.st_gid) != 0) {
    // The old group's permissions are not for another group.
    mode = (mode & 0707) | (mode & 07) << 3;
  }
  (void)!::fchmod(descriptor, mode);
}

void sync_folder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw system_error("is written, but its folder cannot be opened to sync it");
  const bool failed = ::fsync(descriptor) != 0 && errno != EINVAL;  // not every file system can
  const FileError error = system_error("is written, but its folder cannot be synced");
  ::close(descriptor);
  if (failed) throw error;
}

}  // namespace

std::string temporary_prefix() {
  static const std::string prefix = kPrefix + host_id() + "-";
  return prefix;
}

AtomicFile::AtomicFile(const std::string& path) {
  if (path.empty())
    throw FileError(FileError::Kind::Other,
                    "cannot be written: a file must have a name. Got an empty one");
  check_path(path);
  struct stat old {};
  const bool replaces = ::stat(path.c_str(), &old) == 0;
  // A cycle of links, a link that may not be followed, or a folder that may not be searched.
  if (!replaces && errno != ENOENT) throw system_error("cannot be written");
  target_ = resolve_links(path);
  if (replaces) check_replaceable(target_, old);
  const std::filesystem::path target = target_;
  folder_ = target.parent_path().string();
  if (folder_.empty()) folder_.push_back('.');
  // The temporary name is short: without this, a name too long would only fail at the very end.
  const long longest = ::pathconf(folder_.c_str(), _PC_NAME_MAX);
  if (longest > 0 && target.filename().string().size() > static_cast<std::size_t>(longest)) {
    errno = ENAMETOOLONG;
    throw system_error("cannot be written");
  }
  remove_stale(folder_);
  // Nobody else may open it before it has the old file's mode: permissions are checked on opening
  // only.
  const mode_t mode = replaces ? 0600 : 0666;
  open_unnamed(mode);
  if (descriptor_ < 0) open_named(mode);
  if (descriptor_ < 0) throw system_error("cannot be written in its folder");
  if (replaces) copy_owner_and_mode(descriptor_, old);
}

void AtomicFile::open_unnamed(unsigned mode) {
#ifdef O_TMPFILE
  const int descriptor = ::open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (descriptor < 0) return;
  // Some sandboxes have no /proc.
  if (::access(proc_path(descriptor).c_str(), F_OK) == 0 && lock(descriptor)) {
    descriptor_ = descriptor;
  } else {
    ::close(descriptor);
  }
#else
  (void)mode;
#endif
}

void AtomicFile::open_named(unsigned mode) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = temporary_name(folder_);
    const int descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return;
    struct stat status {};
    (void)lock(descriptor);  // without locks, no process can mistake the file for a stale one
    if (::fstat(descriptor, &status) == 0 && status.st_nlink > 0) {
      temporary_ = name;
      descriptor_ = descriptor;
      return;
    }
    ::close(descriptor);  // mistaken for a stale one and removed before it was locked
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

void AtomicFile::give_name() {
#ifdef O_TMPFILE
  for (int attempt = 0; temporary_.empty(); ++attempt) {
    const std::string name = temporary_name(folder_);
    if (::linkat(AT_FDCWD, proc_path(descriptor_).c_str(), AT_FDCWD, name.c_str(),
                 AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
    } else if (errno != EEXIST || attempt == kAttempts) {
      throw system_error("cannot be put in place");
    }
  }
#endif
}

void AtomicFile::commit() {
  if (!sync_file(descriptor_)) throw system_error("cannot be synced");
  if (temporary_.empty()) give_name();
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) throw rename_error();
  temporary_.clear();
  sync_folder(folder_);
}

}  // namespace posenc::platform
