#pragma once

#include "io/read/file.h"

namespace posenc::io {

/// Throws WeightsError for a file of none of our formats: Unsupported with its name and the remedy
/// where its first bytes tell what it is, UnknownFormat else.
[[noreturn]] void refuse_foreign(const InputFile& file);

}  // namespace posenc::io
