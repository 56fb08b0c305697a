#include "io/zip_names.h"

#include <algorithm>
#include <cstring>

namespace posenc::io {
namespace {

// Fixed parts of the records, in bytes (APPNOTE.TXT, section 4.3).
constexpr uint64_t kEnd = 22;
constexpr uint64_t kEnd64 = 56;
constexpr uint64_t kLocator64 = 20;
constexpr uint64_t kEntry = 46;
constexpr uint64_t kLongestComment = 0xffff;
constexpr uint64_t kLargestDirectory = uint64_t{1} << 28;

template <typename Integer>
uint64_t number(const std::string& bytes, std::size_t at) {
  Integer value;
  std::memcpy(&value, bytes.data() + at, sizeof value);  // little-endian, as this machine
  return value;
}

struct Directory {
  uint64_t count;
  uint64_t size;
  uint64_t offset;
};

WeightsError damaged(const std::string& what) {
  return WeightsError(WeightsErrorCode::Corrupt,
                      "the zip archive is damaged: " + what + " (is it truncated?)");
}

Directory find_directory(const InputFile& file) {
  if (file.size() < kEnd) throw damaged("it has no central directory");
  const uint64_t searched = std::min(file.size(), kEnd + kLongestComment);
  const uint64_t base = file.size() - searched;
  const std::string tail = file.read(base, searched);
  std::size_t at = tail.size() - kEnd;
  while (tail.compare(at, 4, "PK\5\6") != 0) {
    if (at-- == 0) throw damaged("it has no central directory");
  }
  Directory directory{number<uint16_t>(tail, at + 10), number<uint32_t>(tail, at + 12),
                      number<uint32_t>(tail, at + 16)};
  uint64_t limit = base + at;  // the directory ends before this record
  const bool is_64 =
      directory.count == 0xffff || directory.size == 0xffffffff || directory.offset == 0xffffffff;
  if (is_64) {
    if (limit < kLocator64 + kEnd64) throw damaged("its zip64 record is missing");
    const std::string locator = file.read(limit - kLocator64, kLocator64);
    const uint64_t record_at = number<uint64_t>(locator, 8);
    if (locator.compare(0, 4, "PK\6\7") != 0 || record_at > limit - kLocator64 - kEnd64) {
      throw damaged("its zip64 record is missing");
    }
    const std::string record = file.read(record_at, kEnd64);
    if (record.compare(0, 4, "PK\6\6") != 0) throw damaged("its zip64 record is missing");
    directory = {number<uint64_t>(record, 32), number<uint64_t>(record, 40),
                 number<uint64_t>(record, 48)};
    limit = record_at;
  }
  if (directory.offset > limit || directory.size > limit - directory.offset ||
      directory.size > kLargestDirectory || directory.count > directory.size / kEntry) {
    throw damaged("its central directory lies outside the file");
  }
  return directory;
}

}  // namespace

bool looks_like_zip(const InputFile& file) {
  return file.size() >= 4 && file.read(0, 4) == "PK\3\4";
}

std::vector<std::string> zip_names(const InputFile& file) {
  const Directory directory = find_directory(file);
  const std::string bytes = file.read(directory.offset, directory.size);
  std::vector<std::string> names;
  std::size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (bytes.size() - at < kEntry || bytes.compare(at, 4, "PK\1\2") != 0) {
      throw damaged("its central directory is cut off");
    }
    const uint64_t name = number<uint16_t>(bytes, at + 28);
    const uint64_t rest = number<uint16_t>(bytes, at + 30) + number<uint16_t>(bytes, at + 32);
    if (bytes.size() - at - kEntry < name + rest) {
      throw damaged("its central directory is cut off");
    }
    names.push_back(bytes.substr(at + kEntry, name));
    at += kEntry + name + rest;
  }
  return names;
}

}  // namespace posenc::io
