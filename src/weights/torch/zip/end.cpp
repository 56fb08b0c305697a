#include "weights/torch/zip/end.h"

#include <algorithm>
#include <string>

#include "weights/common/file.h"

namespace posenc::io {
namespace {

// Fixed parts of the records, in bytes (APPNOTE.TXT, section 4.3).
constexpr uint64_t kEnd = 22;
constexpr uint64_t kEnd64 = 56;
constexpr uint64_t kLocator64 = 20;
constexpr uint64_t kLongestComment = 0xffff;
constexpr uint64_t kShortTail = 4096;  // PyTorch writes no comment
constexpr uint64_t kLargestDirectory = uint64_t{1} << 28;

// The fields before zip64 have up to 32 bits; all ones refer to the zip64 record.
bool agrees(uint64_t old, uint64_t all_ones, uint64_t value) {
  return old == all_ones || old == value;
}

// Offsets in an archive count from its beginning. A shard of a distributed checkpoint consists of
// several archives one after the other, and the last one begins somewhere else.
void refuse_several(const InputFile& file, uint64_t stated, uint64_t found) {
  if (stated >= found || file.read(found - stated, 4) != "PK\3\4") return;
  throw WeightsError(WeightsErrorCode::Unsupported,
                     "is several zip archives one after the other, as a shard (.distcp) of "
                     "PyTorch's distributed checkpoint is",
                     "gather it in Python: torch.distributed.checkpoint.format_utils."
                     "dcp_to_torch_save(folder, file)");
}

ZipDirectory read_end64(const InputFile& file, uint64_t locator_at, const ZipDirectory& old,
                        uint64_t& limit) {
  const std::string locator = file.read(locator_at, kLocator64);
  const auto record_at = little_endian<uint64_t>(locator, 8);
  if (locator_at < kEnd64 || record_at > locator_at - kEnd64) {
    throw damaged_zip("its zip64 record lies outside");
  }
  if (file.read(locator_at - kEnd64, 4) == "PK\6\6") {
    refuse_several(file, record_at, locator_at - kEnd64);
  }
  const std::string record = file.read(record_at, kEnd64);
  if (record.compare(0, 4, "PK\6\6") != 0 ||
      little_endian<uint64_t>(record, 4) != locator_at - record_at - 12) {
    throw damaged_zip("its zip64 record is missing");
  }
  const ZipDirectory directory{little_endian<uint64_t>(record, 32),
                               little_endian<uint64_t>(record, 40),
                               little_endian<uint64_t>(record, 48)};
  if (little_endian<uint64_t>(record, 24) != directory.count ||
      !agrees(old.count, 0xffff, directory.count) ||
      !agrees(old.bytes, 0xffffffff, directory.bytes) ||
      !agrees(old.offset, 0xffffffff, directory.offset)) {
    throw damaged_zip("its two end records differ");
  }
  limit = record_at;
  return directory;
}

}  // namespace

WeightsError damaged_zip(const std::string& rule) {
  return {WeightsErrorCode::Corrupt, "is a damaged zip archive: " + rule};
}

ZipDirectory find_zip_directory(const InputFile& file) {
  uint64_t base = 0;
  std::string tail;
  std::size_t at = std::string::npos;
  for (const uint64_t searched : {kShortTail, kEnd + kLongestComment}) {
    base = file.size() - std::min(file.size(), searched);
    tail = file.read(base, file.size() - base);
    at = tail.rfind("PK\5\6");
    if (at != std::string::npos || base == 0) break;
  }
  if (at == std::string::npos || tail.size() - at < kEnd) {
    throw WeightsError(WeightsErrorCode::Truncated,
                       "is cut off: a zip archive ends with its directory, which is missing");
  }
  if (little_endian<uint16_t>(tail, at + 20) != tail.size() - at - kEnd) {
    throw damaged_zip("it has bytes after its end");
  }
  ZipDirectory directory{little_endian<uint16_t>(tail, at + 10),
                         little_endian<uint32_t>(tail, at + 12),
                         little_endian<uint32_t>(tail, at + 16)};
  if (little_endian<uint32_t>(tail, at + 4) != 0 ||
      little_endian<uint16_t>(tail, at + 8) != directory.count) {
    throw damaged_zip("it is one part of a split archive");
  }
  uint64_t limit = base + at;  // the directory ends where the end records begin
  if (limit >= kLocator64 && file.read(limit - kLocator64, 4) == "PK\6\7") {
    directory = read_end64(file, limit - kLocator64, directory, limit);
  }
  if (directory.bytes <= limit) {
    refuse_several(file, directory.offset, limit - directory.bytes);
  }
  if (directory.bytes > limit || directory.offset != limit - directory.bytes ||
      directory.count > directory.bytes / kZipEntry) {
    throw damaged_zip("its directory lies outside the file");
  }
  if (directory.bytes > kLargestDirectory) {
    throw WeightsError(WeightsErrorCode::LimitExceeded, "has a zip directory of more than 256 MiB");
  }
  return directory;
}

}  // namespace posenc::io
