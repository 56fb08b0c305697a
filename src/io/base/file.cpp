#include "io/base/file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

namespace posenc::io {
namespace {

constexpr std::size_t kReadWhole =
    131072;  // copying this much costs less than a call for each part

}  // namespace

WeightsError weights_error(const platform::FileError& error) {
  using Kind = platform::FileError::Kind;
  const WeightsErrorCode code = error.kind() == Kind::NotFound     ? WeightsErrorCode::NotFound
                                : error.kind() == Kind::NotRegular ? WeightsErrorCode::NotRegular
                                                                   : WeightsErrorCode::Io;
  return {code, error.what(), error.remedy()};
}

bool may_exist(const std::string& path) {
  std::error_code unknown;  // such as a link to itself
  return std::filesystem::exists(path, unknown) || unknown;
}

InputFile::InputFile(const std::string& path) : path_(path) {
  try {
    open();
  } catch (const platform::FileError& error) {
    throw weights_error(error).in_file(path);
  } catch (const WeightsError& error) {
    throw error.in_file(path);
  }
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
  if (!file_) return true;
  try {
    return platform::stamp_of(file_) == stamp_;
  } catch (const platform::FileError& error) {
    throw weights_error(error).in_file(path_);
  }
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
    try {
      got = platform::read_at(file_, offset, into, count);
    } catch (const platform::FileError& error) {
      throw weights_error(error).in_file(path_);
    }
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

namespace {

template <typename F>
decltype(auto) with_weights_errors(F f) {
  try {
    return f();
  } catch (const platform::FileError& error) {
    throw weights_error(error);
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : file_(with_weights_errors([&] { return platform::AtomicFile(path); })) {}

void AtomicFile::write(const void* data, std::size_t count) {
  with_weights_errors([&] { file_.write(data, count); });
}

void AtomicFile::commit() {
  with_weights_errors([&] { file_.commit(); });
}

}  // namespace posenc::io
