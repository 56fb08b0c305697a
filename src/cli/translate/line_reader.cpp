#include "cli/translate/line_reader.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "cli/error.h"
#include "io/read/utf8.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kLongestLine = 1'000'000;  // bytes

bool is_standard_input(const std::string& path) { return path.empty() || path == "-"; }

}  // namespace

LineReader::LineReader(const std::string& path)
    : name_(is_standard_input(path) ? "standard input" : path),
      stream_(is_standard_input(path) ? std::cin : file_),
      buffer_(kLongestLine + 1, '\0') {  // and the zero that getline() puts behind it
  if (is_standard_input(path)) return;
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) refuse("{}: must be a file of text", path);
  file_.open(path, std::ios::binary);
  if (!file_) refuse("{}: cannot be opened", path);
  const auto size = std::filesystem::file_size(path, unknown);
  if (!unknown) size_ = size;
}

bool LineReader::is_typed() const { return &stream_ == &std::cin && ::isatty(STDIN_FILENO) == 1; }

bool LineReader::next(std::string& line) {
  stream_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  auto count = static_cast<std::size_t>(stream_.gcount());
  if (stream_.bad()) refuse("{}: cannot be read behind line {}", name_, number_);
  if (count == 0) return false;
  ++number_;
  bytes_ += count;
  if (stream_.fail()) {
    refuse("{}: line {} must have at most {} bytes", name_, number_, kLongestLine);
  }
  if (!stream_.eof()) --count;  // the line's end
  if (count > 0 && buffer_[count - 1] == '\r') --count;
  line.assign(buffer_, 0, count);
  if (!io::is_utf8(line)) refuse("{}: line {} must be UTF-8", name_, number_);
  return true;
}

}  // namespace posenc::cli
