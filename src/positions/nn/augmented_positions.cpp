#include "positions/nn/augmented_positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <cmath>

namespace posenc {
namespace {

// A number for each of the last axes, or one for all.
at::Tensor drawn(const at::Tensor& positions, int64_t count, double low, double high) {
  return at::empty({1, count}, positions.options()).uniform_(low, high);
}

void check_factor(const char* module, const char* name, double value) {
  TORCH_CHECK_VALUE(value == 0.0 || (std::isfinite(value) && value >= 1.0), "[", module, "] ", name,
                    " must be 0 or at least 1. Got ", value);
}

}  // namespace

void check_augmentation(const char* module, const PositionAugmentation& augmentation) {
  const double shift = augmentation.shift;
  TORCH_CHECK_VALUE(std::isfinite(shift) && shift >= 0.0, "[", module,
                    "] shift must be finite and not negative. Got ", shift);
  check_factor(module, "jitter", augmentation.jitter);
  check_factor(module, "rescale", augmentation.rescale);
}

at::Tensor augmented_positions(const at::Tensor& positions,
                               const PositionAugmentation& augmentation) {
  at::Tensor changed = positions.to(at::kFloat);
  const int64_t axes = changed.size(-1);
  if (augmentation.shift != 0.0)
    changed = changed + drawn(changed, axes, -augmentation.shift, augmentation.shift);
  if (augmentation.jitter != 0.0) {
    const double most = std::log(augmentation.jitter);
    changed = changed * drawn(changed, axes, -most, most).exp();
  }
  if (augmentation.rescale != 0.0) {
    const double most = std::log(augmentation.rescale);
    changed = changed * drawn(changed, 1, -most, most).exp();
  }
  return changed;
}

}  // namespace posenc
