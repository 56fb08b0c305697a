#include "core/floating_point.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include <limits>

namespace posenc {
namespace {

at::ScalarType integer_of(const at::Tensor& x) {
  switch (x.element_size()) {
    case 1: return at::kChar;
    case 2: return at::kShort;
    case 4: return at::kInt;
    default: return at::kLong;
  }
}

}  // namespace

at::Tensor bits_of(const at::Tensor& x) { return x.contiguous().view(integer_of(x)); }

at::Tensor ordinals(const at::Tensor& bits) {
  const int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - 8 * bits.element_size());
  const at::Tensor integers = bits.to(at::kLong);
  return at::where(integers < 0, lowest - integers, integers);
}

}  // namespace posenc
