#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/timestep_embedding.h"
#include "posenc/sinusoid/options.h"

namespace posenc::functional {

/// The sinusoid at times that need not be whole: float32 rows on t's device.
///
/// t: (N), integer or real, in timesteps  ->  (N, D); differentiable in a real t. The frequencies
/// are computed on the CPU, so that they have the recipe's bits on every device; t is not read back
/// but for Precision::Exact and sinusoids that are more than sines and cosines of t f. Throws
/// c10::ValueError for another rank, options without rows of single positions, and, where t lies on
/// the CPU, times that are not finite; c10::TypeError for a boolean or complex t.
at::Tensor timestep_rows(const at::Tensor& t, const SinusoidOptions& sinusoid);

/// Linear(SiLU(Linear(timestep_rows(t)))), on the weights' device and in their dtype.
///
/// t: (N)  ->  (N, C) for weights (H, D), (H), (C, H), (C). Errors as above.
at::Tensor sinusoidal_timesteps(const at::Tensor& t, const SinusoidOptions& sinusoid,
                                const TimestepWeights& weights);

}  // namespace posenc::functional
