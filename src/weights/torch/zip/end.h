#pragma once

#include <cstdint>

#include "weights/common/file.h"

namespace posenc::io {

/// The fixed part of a central directory's entry, in bytes (APPNOTE.TXT, section 4.3).
constexpr uint64_t kZipEntry = 46;

/// The place of a zip archive's central directory.
struct ZipDirectory {
  uint64_t count = 0;  ///< the number of its entries, which fit into `bytes`
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< inside the file, with its end records right after it
};

/// Reads the records at the end of an archive, including those of zip64. Throws WeightsError.
ZipDirectory find_zip_directory(const InputFile& file);

/// The error for every damaged archive.
WeightsError damaged_zip(const std::string& rule);

}  // namespace posenc::io
