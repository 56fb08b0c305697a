#pragma once

#include "io/base/file.h"

namespace posenc::io {

/// Throws WeightsError for a file of none of our formats: Unsupported with its name and the remedy
/// where its first bytes tell what it is, UnknownFormat else.
[[noreturn]] void refuse_unknown_format(const InputFile& file);

}  // namespace posenc::io
