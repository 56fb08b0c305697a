#pragma once

#include <cstdint>
#include <fstream>
#include <istream>
#include <string>

namespace posenc::cli {

/// The lines of a file, or of standard input: UTF-8, of at most a million bytes each. Refuses
/// others, naming the line.
class LineReader {
 public:
  /// "" or "-": standard input.
  explicit LineReader(const std::string& path);

  /// The next line, without its end, `\n` or `\r\n`; false behind the last one.
  bool next(std::string& line);

  int64_t number() const { return number_; }  ///< of the line that next() gave, from 1
  uint64_t bytes() const { return bytes_; }   ///< read so far
  uint64_t size() const { return size_; }     ///< of the file; 0 where that is not known
  const std::string& name() const { return name_; }
  /// Whether somebody types the lines.
  bool is_typed() const;

 private:
  std::string name_;
  std::ifstream file_;
  std::istream& stream_;
  int64_t number_ = 0;
  uint64_t bytes_ = 0, size_ = 0;
  std::string buffer_;
};

}  // namespace posenc::cli
