#include "functional/fourier_mixing.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/fft_fft.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/flip.h>
#include <ATen/ops/real.h>
#include <ATen/ops/roll.h>

namespace posenc::functional {

// The transform of real numbers at (-l, -d) is the conjugate of that at (l, d), so that half of the
// channels give the rest.
at::Tensor fourier_mixing(const at::Tensor& x) {
  if (x.numel() == 0) return x;
  const int64_t width = x.size(2), half = width / 2 + 1;
  const at::Tensor channels = at::fft_rfft(x, std::nullopt, /*dim=*/2);
  const at::Tensor first = at::real(at::fft_fft(channels, std::nullopt, /*dim=*/1));
  const at::Tensor mirrored = at::flip(first.narrow(2, 1, width - half), {1, 2});
  return at::cat({first, at::roll(mirrored, /*shifts=*/1, /*dims=*/1)}, 2);
}

}  // namespace posenc::functional
