#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace posenc::platform {

/// The bytes of a file in memory, read when they are used and shared with other processes that map
/// it. A file that is renamed or removed keeps its bytes while they are mapped. One that is
/// truncated meanwhile ends the process that reads beyond its end (SIGBUS), and one that is written
/// to changes here too: files that are mapped are to be replaced, as AtomicFile does.
class Mapping {
 public:
  /// Opens and maps a regular file. Throws FileError.
  explicit Mapping(const std::string& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::string_view bytes() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  const char* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace posenc::platform
