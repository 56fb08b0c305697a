#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "posenc/io/manifest.h"

namespace posenc::io {

at::ScalarType scalar_type(ManifestDtype dtype);

/// Nothing for quantised and sub-byte types, which no file of ours can hold.
std::optional<ManifestDtype> dtype_of(at::ScalarType type);

/// `float32`, as torch names it.
std::string type_name(at::ScalarType type);

/// Whether LoadOptions::cast() may turn the one into the other.
bool can_cast(at::ScalarType from, at::ScalarType to);

}  // namespace posenc::io
