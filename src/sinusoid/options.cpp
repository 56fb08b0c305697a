#include "posenc/sinusoid/options.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <tuple>

namespace posenc {
namespace {

auto axes(const SinusoidOptions& o) {
  return std::make_tuple(o.dim(), o.base(), o.frequency(), o.phase(), o.power_shape(), o.layout(),
                         o.odd_dim(), o.arithmetic());
}

}  // namespace

bool operator==(const SinusoidOptions& a, const SinusoidOptions& b) { return axes(a) == axes(b); }

void check(const SinusoidOptions& options) {
  const int64_t dim = options.dim();
  TORCH_CHECK_VALUE(dim > 0, "[sinusoid] dim must be positive. Got ", dim);
  TORCH_CHECK_VALUE(dim % 2 == 0 || options.odd_dim() != OddDim::Error,
                    "[sinusoid] dim must be even, or .odd_dim(OddDim::ExtraSin | "
                    "OddDim::ZeroColumn) must say what the last channel holds. Got ",
                    dim);
  TORCH_CHECK_VALUE(std::isfinite(options.base()) && options.base() > 0.0,
                    "[sinusoid] base must be positive and finite. Got ", options.base());
  TORCH_CHECK_VALUE(options.arithmetic() == c10::ScalarType::Float ||
                        options.arithmetic() == c10::ScalarType::Double,
                    "[sinusoid] arithmetic must be float32 or float64. Got ", options.arithmetic());
}

}  // namespace posenc
