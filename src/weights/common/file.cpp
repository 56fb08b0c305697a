#include "weights/common/file.h"

#include <algorithm>
#include <cstring>

namespace posenc::io {
namespace {

// Copying this much costs less than a call for each part.
constexpr std::size_t kReadWhole = 131072;

}  // namespace

WeightsError weights_error(const platform::FileError& error) {
  using Kind = platform::FileError::Kind;
  const WeightsErrorCode code = error.kind() == Kind::NotFound     ? WeightsErrorCode::NotFound
                                : error.kind() == Kind::NotRegular ? WeightsErrorCode::NotRegular
                                                                   : WeightsErrorCode::Io;
  return {code, error.what(), error.remedy()};
}

InputFile::InputFile(const std::string& path) : path_(path) {
  in_file(path, [this] { open(); });
}

void InputFile::open() {
  file_ = platform::open_to_read(path_);
  stamp_ = platform::stamp_of(file_);
  if (size() == 0) throw WeightsError(WeightsErrorCode::Truncated, "is empty");
  if (size() > kReadWhole) return;
  whole_ = read(0, size());
  if (platform::stamp_of(file_) != stamp_) {
    throw WeightsError(WeightsErrorCode::Io, "has been written to while it was read");
  }
  bytes_ = whole_;
  file_.close();
}

bool InputFile::is_unchanged() const {
  return !file_ || in_file(path_, [this] { return platform::stamp_of(file_) == stamp_; });
}

// A file of a few KB on disk can be many GB long, too much to allocate for its holes.
// platform::stored_bytes() finds the data, since block counts may be zero or out of date.
void InputFile::check_holes(uint64_t offset, std::size_t count) const {
  constexpr uint64_t kFree = uint64_t{128} << 20;
  constexpr uint64_t kFactor = 64;  // allows for zeros that became holes when the file was copied
  if (count <= kFree || !file_) return;
  const uint64_t due = (count - kFree) / kFactor,
                 end = offset + std::min<uint64_t>(count, size() - offset);
  const auto stored = platform::stored_bytes(file_, offset, end, due);
  if (!stored || *stored >= due) return;
  throw WeightsError(WeightsErrorCode::LimitExceeded, "must not require " + std::to_string(count) +
                                                          " bytes at once, as it has only " +
                                                          std::to_string(*stored) +
                                                          " of them on disk, and holes")
      .in_file(path_);
}

void InputFile::read(uint64_t offset, void* into, std::size_t count) const {
  if (count == 0) return;
  const bool inside = offset <= size() && count <= size() - offset;
  if (whole_file_ != nullptr && inside) return whole_file_->read(begin_ + offset, into, count);
  std::size_t got = 0;
  if (!file_) {
    if (inside) std::memcpy(into, bytes_.data() + offset, got = count);
  } else {
    got = in_file(path_, [&] { return platform::read_at(file_, offset, into, count); });
  }
  if (got == count) return;
  throw WeightsError(WeightsErrorCode::Truncated, "ended at byte " + std::to_string(offset + got) +
                                                      " of the " + std::to_string(size()) +
                                                      " that it had when it was opened")
      .in_file(path_);
}

std::string InputFile::read(uint64_t offset, std::size_t count) const {
  whole_file_ != nullptr ? whole_file_->check_holes(begin_ + offset, count)
                         : check_holes(offset, count);
  std::string bytes(count, '\0');
  read(offset, bytes.data(), count);
  return bytes;
}

std::string read_text(const std::string& path, uint64_t most) {
  const InputFile file(path);
  if (file.size() <= most) return file.read(0, file.size());
  throw WeightsError(
      WeightsErrorCode::LimitExceeded,
      "must have at most " + std::to_string(most) + " bytes. Got " + std::to_string(file.size()))
      .in_file(path);
}

}  // namespace posenc::io
