#pragma once

#include <optional>

#include "kernels/embed.h"

namespace posenc::functional {

/// How the chosen kernels have to round for at::layer_norm's bits; nullopt if they cannot. That
/// depends on the code that ATen chose for this processor, or that ATEN_CPU_CAPABILITY selects, and
/// is therefore tested, once.
std::optional<kernels::embed::NormRounding> norm_rounding();

}  // namespace posenc::functional
