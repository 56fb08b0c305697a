#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

#include "posenc/io/manifest.h"

namespace posenc::io {

at::ScalarType scalar_type(ManifestDtype dtype);

/// nullopt for quantised types and those of single bits, which none of our file formats can hold.
std::optional<ManifestDtype> manifest_dtype(at::ScalarType type);

/// The name in torch, such as `float32`.
std::string type_name(at::ScalarType type);

/// Whether LoadOptions::cast() may convert `from` to `to`.
bool can_cast(at::ScalarType from, at::ScalarType to);

}  // namespace posenc::io
