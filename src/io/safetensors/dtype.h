#pragma once

#include <optional>
#include <string_view>

#include "posenc/io/error.h"
#include "posenc/io/manifest.h"

namespace posenc::io {

/// The dtype that safetensors calls `name`; nullopt if it is unknown or LibTorch lacks it. Where
/// the format counts elements of F4, ManifestDtype::Float4_e2m1fn_x2 counts pairs.
std::optional<ManifestDtype> dtype_of_safetensors(std::string_view name);

/// The bits of an element if it is smaller than a byte, otherwise 0.
int bits_of_safetensors(std::string_view name);

/// The error for a dtype without a counterpart: Unsupported.
WeightsError unknown_safetensors_dtype(std::string_view name);

/// The name of `dtype` in safetensors; empty for complex32 and complex128, which it lacks.
std::string_view safetensors_dtype(ManifestDtype dtype);

}  // namespace posenc::io
