#pragma once

#include "platform/file.h"
#include "posenc/io/error.h"

namespace posenc::io {

/// An error of the operating system, as the type that all reading and writing of weights throws.
WeightsError weights_error(const platform::FileError& error);

}  // namespace posenc::io
