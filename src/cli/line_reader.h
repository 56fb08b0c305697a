#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/platform/streams.h"

namespace posenc::cli {

/// Reads the lines of a file or of standard input: UTF-8, at most `longest` bytes each. Otherwise
/// throws CommandError with the line number.
class LineReader {
 public:
  /// "" or "-" means standard input.
  explicit LineReader(const std::string& path, std::size_t longest = 1'000'000);

  /// Reads the next line, without `\n` or `\r\n`, waiting if necessary; returns false at the end.
  bool next(std::string& line);
  /// Whether next() can return without waiting: always for a file; for a pipe or terminal, if a
  /// complete line or the end has arrived.
  bool is_ready();

  int64_t number() const { return number_; }  ///< of the last line read, from 1
  uint64_t bytes() const { return bytes_; }   ///< bytes read so far
  uint64_t size() const { return size_; }     ///< of the file; 0 if unknown
  const std::string& name() const { return name_; }

 private:
  bool has_line();
  bool wait(bool for_ever) const;
  void fill();

  std::string name_;
  platform::InputStream input_;
  std::size_t longest_;
  int64_t number_ = 0;
  uint64_t bytes_ = 0, size_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;     // start of the next line in the buffer
  std::size_t searched_ = 0;  // no newline in the buffer before this
  bool at_end_ = false;       // of the input
};

}  // namespace posenc::cli
