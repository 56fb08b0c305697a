#include "cli/line_reader.h"

#include <filesystem>

#include "base/text.h"
#include "cli/error.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kChunk = 65536;  // the capacity of a pipe

bool is_standard_input(const std::string& path) { return path.empty() || path == "-"; }

}  // namespace

LineReader::LineReader(const std::string& path, std::size_t longest) try
    : name_(is_standard_input(path) ? "standard input" : path),
      input_(is_standard_input(path) ? "" : path),
      longest_(longest) {
  if (is_standard_input(path)) return;
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) fail("{}: must be a text file", path);
  const auto size = std::filesystem::file_size(path, unknown);
  if (!unknown) size_ = size;
} catch (const platform::FileError& error) {
  fail("{}: {}", path, error.what());
}

bool LineReader::wait(bool for_ever) const {
  try {
    return input_.is_ready(for_ever);
  } catch (const platform::FileError& error) {
    fail("{}: {}", name_, error.what());
  }
}

void LineReader::fill() {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  const std::size_t held = buffer_.size();
  buffer_.resize(held + kChunk);
  try {
    const auto count = input_.read(buffer_.data() + held, kChunk);
    buffer_.resize(held + count.value_or(0));
    at_end_ = count && *count == 0;
  } catch (const platform::FileError& error) {
    fail("{}: after line {}: {}", name_, number_, error.what());
  }
}

// Whether the buffer contains the rest of the next line, enough to know that it is too long, or the
// end of the input.
bool LineReader::has_line() {
  const auto end = buffer_.find('\n', searched_);
  searched_ = end == std::string::npos ? buffer_.size() : end;
  return at_end_ || searched_ < buffer_.size() || searched_ - begin_ > longest_;
}

bool LineReader::is_ready() {
  while (!has_line()) {
    if (!wait(/*for_ever=*/false)) return false;
    fill();
  }
  return true;
}

bool LineReader::next(std::string& line) {
  while (!has_line()) {
    wait(/*for_ever=*/true);
    fill();
  }
  if (begin_ == buffer_.size()) return false;
  ++number_;
  if (searched_ - begin_ > longest_) {
    fail("{}: line {} must have at most {} bytes", name_, number_, longest_);
  }
  line.assign(buffer_, begin_, searched_ - begin_);
  if (line.ends_with('\r')) line.pop_back();
  const std::size_t past = searched_ + (searched_ < buffer_.size() ? 1 : 0);
  bytes_ += past - begin_;
  begin_ = searched_ = past;
  const std::size_t good = io::utf8_prefix(line);
  if (good < line.size()) {
    fail("{}: line {} must be UTF-8. Got another byte at {}", name_, number_, good);
  }
  return true;
}

}  // namespace posenc::cli
