#pragma once

/// @file
/// The version. The macros describe the headers that a program is compiled with, version()
/// the library that it is linked to. CMake reads the version from this file.

/// Major version.
#define POSENC_VERSION_MAJOR 0
/// Minor version; before 1.0 an incompatible change of the API increases it.
#define POSENC_VERSION_MINOR 2
/// Patch version.
#define POSENC_VERSION_PATCH 0
/// The version as a string, `major.minor.patch`.
#define POSENC_VERSION "0.2.0"

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The version of the linked library, such as `0.2.0`.
const char* version();

}  // namespace posenc
