#pragma once

#include <string_view>

#include "posenc/io/manifest.h"

namespace posenc::io {

/// The dtype that safetensors calls `name`. Throws WeightsError for an unknown one and for types
/// below a byte.
Dtype dtype_of_safetensors(std::string_view name);

/// The name that safetensors has for `dtype`; empty for complex32 and complex128, which it lacks.
std::string_view safetensors_dtype(Dtype dtype);

}  // namespace posenc::io
