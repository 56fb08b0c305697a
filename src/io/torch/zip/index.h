#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/base/file.h"
#include "io/base/keyed_hash.h"

namespace posenc::io {

/// A record of a zip archive. Its bytes lie inside the file and are no other record's: checked.
struct ZipRecord {
  std::string_view name;
  uint64_t offset = 0;  ///< of its first byte of data, in the file
  uint64_t bytes = 0;   ///< unpacked; for a stored record these are the bytes in the file
  uint64_t packed = 0;
  uint32_t crc = 0;  ///< 0 where the writer left it out
  uint16_t method = 0;

  bool stored() const noexcept { return method == 0; }
};

/// The records of a zip archive, read from its central directory in one go and held against the
/// local headers: what another reader would find in another place is refused. Archives that are
/// encrypted, split, or have bytes after their end are refused too. Throws WeightsError.
class ZipIndex {
 public:
  explicit ZipIndex(const InputFile& file);
  ZipIndex(const ZipIndex&) = delete;
  ZipIndex& operator=(const ZipIndex&) = delete;

  const InputFile& file() const noexcept { return file_; }
  /// In the order of the directory.
  const std::vector<ZipRecord>& records() const noexcept { return records_; }

  /// The record of that name, or null.
  const ZipRecord* find(std::string_view name) const;

  /// The bytes of a stored record, its checksum checked where it has one. A compressed record is
  /// Unsupported.
  std::string read(const ZipRecord& record) const;

 private:
  void read_directory();
  void read_local_headers(uint64_t end);

  const InputFile& file_;
  std::string directory_;  // the records' names point into it
  std::vector<ZipRecord> records_;
  NameViewMap<std::size_t> places_;
};

/// Whether the file begins like a zip archive.
bool looks_like_zip(const InputFile& file);

}  // namespace posenc::io
