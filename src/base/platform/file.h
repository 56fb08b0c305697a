#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

// Files as the operating system provides them.
namespace posenc::platform {

/// Why a file is refused, by the system or by a rule of this folder.
class FileError : public std::runtime_error {
 public:
  enum class Kind { NotFound, NotRegular, Other };
  FileError(Kind kind, const std::string& reason, std::string remedy = "")
      : std::runtime_error(reason), kind_(kind), remedy_(std::move(remedy)) {}

  Kind kind() const noexcept { return kind_; }
  const std::string& remedy() const noexcept { return remedy_; }

 private:
  Kind kind_;
  std::string remedy_;
};

/// "what: the system's reason" for the current errno.
FileError system_error(const std::string& what);

/// A file descriptor, closed by the destructor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  void close();

 private:
  int release();

  int number_ = -1;
};

/// Identifies a file and its state: a file that was written to since compares unequal.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t seconds = 0, nanoseconds = 0;  ///< of its last change

  bool operator==(const FileStamp&) const = default;
};

/// The stamp of the file at `path`; all zeros if there is none.
FileStamp stamp_of(const std::string& path);

/// The stamp of an open file; throws FileError unless it is a regular file.
FileStamp stamp_of(const Descriptor& file);

/// Whether there is something at `path`, or the system does not tell; opening it says why.
bool may_exist(const std::string& path);

/// Throws FileError for a path with a zero byte, where the system would end it.
void check_path(const std::string& path);

/// Opens for reading. A FIFO without a writer does not block. Throws FileError.
Descriptor open_to_read(const std::string& path);

/// Reads `count` bytes from `offset` on; returns the number read, which is smaller only at the end
/// of the file. Throws FileError.
std::size_t read_at(const Descriptor& file, uint64_t offset, void* into, std::size_t count);

/// The number of bytes between `begin` and `end` that are stored, not holes, counted up to
/// `enough`; nullopt if the file system does not report it. A file system without holes reports all
/// bytes as stored.
std::optional<uint64_t> stored_bytes(const Descriptor& file, uint64_t begin, uint64_t end,
                                     uint64_t enough);

}  // namespace posenc::platform
