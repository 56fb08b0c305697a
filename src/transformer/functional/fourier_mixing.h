#pragma once

#include <ATen/core/Tensor.h>

namespace posenc::functional {

/// The real part of the Fourier transform of each sequence over its tokens and its channels, whose
/// result is as large as x: FNet's mixing of tokens.
///
/// x: real (B, L, D)  ->  (B, L, D).
///
/// Source: `FNetBasicFourierTransform` in transformers 5.23.
at::Tensor fourier_mixing(const at::Tensor& x);

}  // namespace posenc::functional
