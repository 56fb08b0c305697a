#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/sincos_types.h"
#include "posenc/positions/sinusoid/options.h"
#include "positions/sinusoid/rows.h"

namespace posenc {

/// Throws c10::ValueError if Precision::Exact is not defined: for a formula whose frequencies or
/// positions are not rational powers of a double (LoFTR's bug, linspace, normalised coordinates,
/// angles divided by the length), or whose table is rescaled afterwards.
void check_exact(const SinusoidOptions& options);

/// The exact counterpart of reference_rows(): positions (N), int64 or float64, below 2^31 in
/// magnitude -> (N, options.channels()) of `dtype`, each entry rounded once from the formula's real
/// value.
at::Tensor exact_rows(const SinusoidOptions& options, const at::Tensor& positions,
                      at::ScalarType dtype);

at::Tensor exact_rows(const SinusoidOptions& options, const RowSequence& rows,
                      at::ScalarType dtype);

/// The exact counterpart of reference_grid().
at::Tensor exact_grid(const SinusoidOptions& options, at::ScalarType dtype);

/// The frequencies of an axis of `channels` channels in the form that the kernels take.
kernels::sincos::FrequencySpec exact_frequencies(const SinusoidOptions& options, int64_t channels,
                                                 bool cosine);

/// The kernels' format for a dtype. Throws c10::TypeError for one that is not floating point.
kernels::sincos::Format exact_format(at::ScalarType dtype);

/// Where an axis's entries are in rows (N, width).
kernels::sincos::RowLayout exact_layout(const SinusoidOptions& options, int64_t axis,
                                        int64_t width);

}  // namespace posenc
