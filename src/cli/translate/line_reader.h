#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "platform/streams.h"

namespace posenc::cli {

/// The lines of a file, or of standard input: UTF-8, of at most a million bytes each. Refuses
/// others, naming the line.
class LineReader {
 public:
  /// "" or "-": standard input.
  explicit LineReader(const std::string& path);

  /// The next line, without its end, `\n` or `\r\n`; false after the last one. Waits for it.
  bool next(std::string& line);
  /// Whether next() would not have to wait: of a file always, of a pipe or a terminal where a whole
  /// line, or the end, is there.
  bool is_ready();

  int64_t number() const { return number_; }  ///< of the line that next() gave, from 1
  uint64_t bytes() const { return bytes_; }   ///< read so far
  uint64_t size() const { return size_; }     ///< of the file; 0 where that is not known
  const std::string& name() const { return name_; }

 private:
  bool has_line();
  bool wait(bool for_ever) const;
  void fill();

  std::string name_;
  platform::InputStream input_;
  int64_t number_ = 0;
  uint64_t bytes_ = 0, size_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;     // of the next line, in the buffer
  std::size_t searched_ = 0;  // up to here the buffer has no line's end
  bool at_end_ = false;       // of the input
};

}  // namespace posenc::cli
