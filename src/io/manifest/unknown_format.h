#pragma once

#include "io/base/file.h"

namespace posenc::io {

/// Throws WeightsError for a file in none of our formats: Unsupported, with its name and a remedy,
/// if its first bytes identify it, otherwise UnknownFormat.
[[noreturn]] void refuse_unknown_format(const InputFile& file);

}  // namespace posenc::io
