#pragma once

#include "io/read/file.h"

namespace posenc::io {

enum class Format { Safetensors, TorchScript };

/// What the file holds, by its content. Throws WeightsError for what cannot be read, with its name
/// and the remedy where it is known, and for a zip archive that is not whole.
Format detect_format(const InputFile& file);

}  // namespace posenc::io
