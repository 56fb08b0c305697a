#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/positions/rotary/rotary.h"

namespace posenc {

/// The frequencies of the formula in real arithmetic, each as the sum of two float64: (2, n). The
/// ends of YaRN's ramp are float64.
at::Tensor exact_inv_freq(const RotaryOptions& options, int64_t length);

/// How often each entry occurs in a row: once, or twice as in CosLayout::Halves or Pairs.
enum class Copies { One, Halves, Pairs };

/// cos and sin of the real angles at positions (..., L), integers or reals: (..., L, n) for the n
/// frequencies, which are those of one plane, or (..., L, 2 n) with copies; each entry rounded once
/// to `dtype`; twice where it has an attention scaling, which float64 multiplies. Both are in one
/// storage.
RotaryCosSin exact_cos_sin(const RotaryOptions& options, const RotaryFrequencies& frequencies,
                           const at::Tensor& positions, at::ScalarType dtype,
                           Copies copies = Copies::One);

}  // namespace posenc
