#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/common/file.h"
#include "weights/common/keyed_hash.h"

namespace posenc::io {

/// A record of a zip archive. Its bytes have been checked to be in the file and in no other record.
struct ZipRecord {
  std::string_view name;
  uint64_t offset = 0;  ///< of its first byte of data, in the file
  uint64_t bytes = 0;   ///< unpacked size; for a stored record also the size in the file
  uint64_t packed = 0;
  uint32_t crc = 0;  ///< 0 if the writer left it out
  uint16_t method = 0;

  bool stored() const noexcept { return method == 0; }
};

/// The records of a zip archive, read at once from its central directory and compared with the
/// local headers: an archive that another reader would read differently is refused. So are archives
/// that are encrypted, split, or have bytes after their end. Throws WeightsError.
class ZipIndex {
 public:
  explicit ZipIndex(const InputFile& file);
  ZipIndex(const ZipIndex&) = delete;
  ZipIndex& operator=(const ZipIndex&) = delete;

  const InputFile& file() const noexcept { return file_; }
  /// In directory order.
  const std::vector<ZipRecord>& records() const noexcept { return records_; }

  /// The record with this name, or null.
  const ZipRecord* find(std::string_view name) const;

  /// The bytes of a stored record, checked against its checksum if it has one. A compressed record
  /// is Unsupported.
  std::string read(const ZipRecord& record) const;

 private:
  void read_directory();
  void read_local_headers(uint64_t end);

  const InputFile& file_;
  std::string directory_;  // the records' names point into it
  std::vector<ZipRecord> records_;
  NameViewMap<std::size_t> indices_;
};

/// Whether the file starts like a zip archive.
bool looks_like_zip(const InputFile& file);

}  // namespace posenc::io
