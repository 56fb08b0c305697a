#pragma once

#include <string>
#include <vector>

#include "io/read/file.h"

namespace posenc::io {

/// Whether the file begins like a zip archive.
bool looks_like_zip(const InputFile& file);

/// The names in a zip archive's central directory, in its order. Only the directory is read and
/// checked, not the entries. Throws WeightsError where it is not whole.
std::vector<std::string> zip_names(const InputFile& file);

}  // namespace posenc::io
