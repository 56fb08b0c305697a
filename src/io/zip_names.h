#pragma once

#include <string>
#include <vector>

#include "io/read/file.h"

namespace posenc::io {

/// The names in a zip archive's central directory, in its order. Only the directory is read and
/// checked, not the entries. Throws WeightsError where it is not whole.
std::vector<std::string> zip_names(const InputFile& file);

}  // namespace posenc::io
