#pragma once

// The one place that holds the version: CMake reads it from here. The macros are those of the
// headers that a program was compiled with, version() is that of the library that it is linked
// with.
#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0
#define POSENC_VERSION "0.1.0"

namespace posenc {

/// "0.1.0"
const char* version();

}  // namespace posenc
