#pragma once

#include "platform/file.h"
#include "posenc/io/error.h"

namespace posenc::io {

/// What the operating system said, as the error of everything that reads or writes weights.
WeightsError weights_error(const platform::FileError& error);

}  // namespace posenc::io
