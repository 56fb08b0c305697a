#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/export.h"
#include "posenc/positions/functional/timestep_embedding.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// The sinusoid at integer or fractional times: float32 rows on t's device.
///
/// t: (N), integer or floating-point, in timesteps  ->  (N, D); differentiable in a floating-point
/// t. The frequencies are computed on the CPU, so that they are the same bits on every device; t is
/// read back from the device only for Precision::Exact and for sinusoids that do more than take
/// sines and cosines of t f.
///
/// Errors: c10::ValueError for a wrong rank, for options in which a single position has no row, and
/// for times on the CPU that are not finite; c10::TypeError for a boolean or complex t.
at::Tensor timestep_rows(const at::Tensor& t, const SinusoidOptions& sinusoid);

/// Linear(SiLU(Linear(timestep_rows(t)))), on the weights' device and in their dtype.
///
/// t: (N)  ->  (N, C) for weights (H, D), (H), (C, H), (C).
///
/// Errors: those of timestep_rows().
at::Tensor sinusoidal_timesteps(const at::Tensor& t, const SinusoidOptions& sinusoid,
                                const TimestepWeights& weights);

}  // namespace functional
}  // namespace posenc
