#pragma once

#include <optional>

#include "kernels/front.h"

namespace posenc::functional {

/// How the chosen kernels have to round for at::layer_norm's bits; nullopt if they cannot. That
/// depends on the code that ATen runs on this processor, or was told to run by ATEN_CPU_CAPABILITY,
/// and so is tested, once.
std::optional<kernels::embed::NormRounding> norm_rounding();

}  // namespace posenc::functional
