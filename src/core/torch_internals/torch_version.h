#pragma once

#include <torch/version.h>

/// Whether LibTorch is of this version or newer, for #if.
#define POSENC_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||         \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
