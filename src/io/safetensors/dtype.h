#pragma once

#include <optional>
#include <string_view>

#include "posenc/io/error.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// The dtype that safetensors calls `name`; nothing for an unknown one and for types below a byte.
std::optional<ManifestDtype> dtype_of_safetensors(std::string_view name);

/// What is wrong with a dtype that there is not: Unsupported.
WeightsError unknown_safetensors_dtype(std::string_view name);

/// The name that safetensors has for `dtype`; empty for complex32 and complex128, which it lacks.
std::string_view safetensors_dtype(ManifestDtype dtype);

}  // namespace posenc::io
