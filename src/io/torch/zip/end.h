#pragma once

#include <cstdint>

#include "io/base/file.h"

namespace posenc::io {

/// Where the central directory of a zip archive lies.
struct ZipDirectory {
  uint64_t count = 0;  ///< of its entries; they fit into `bytes`
  uint64_t bytes = 0;
  uint64_t offset = 0;  ///< inside the file, with its end records right after it
};

/// Reads the records at the end of an archive, those of zip64 included. Throws WeightsError.
ZipDirectory find_zip_directory(const InputFile& file);

/// The error of every damaged archive.
WeightsError damaged_zip(const std::string& rule);

}  // namespace posenc::io
