#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

// Files as the operating system has them.
namespace posenc::platform {

/// What the system, or a rule of this folder, has against a file.
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

/// The number of an open file, which the destructor closes.
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

/// Which file a name leads to, and in which state: one that was written to since differs.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t seconds = 0, nanoseconds = 0;  ///< of its last change

  bool operator==(const FileStamp&) const = default;
};

/// Of the file of that name; nothing but zeros where there is none.
FileStamp stamp_of(const std::string& path);

/// Of an open file; throws FileError for one that is not regular.
FileStamp stamp_of(const Descriptor& file);

/// Opens for reading. A FIFO without a writer does not block. Throws FileError.
Descriptor open_to_read(const std::string& path);

/// Reads `count` bytes from `offset` on; returns how many there are, fewer only where the file
/// ends. Throws FileError.
std::size_t read_at(const Descriptor& file, uint64_t offset, void* into, std::size_t count);

/// How many bytes between `begin` and `end` are stored rather than holes, counted up to `enough`;
/// nothing where the file system does not say. One without holes says that all of them are.
std::optional<uint64_t> stored_bytes(const Descriptor& file, uint64_t begin, uint64_t end,
                                     uint64_t enough);

}  // namespace posenc::platform
