#include "transformer/functional/fourier_mixing.h"

#include <ATen/ops/fft_fftn.h>
#include <ATen/ops/real.h>

namespace posenc::functional {

// As complex numbers: MKL's transforms of several rows of real ones depend on the number of threads
// in their last bits.
at::Tensor fourier_mixing(const at::Tensor& x) {
  if (x.numel() == 0) return x;
  return at::real(at::fft_fftn(x, std::nullopt, {{1, 2}}));
}

}  // namespace posenc::functional
