#include "nn/computed_table.h"

#include <algorithm>
#include <cmath>

#include "posenc/sinusoid/table.h"

namespace posenc {
namespace {

// Machines and libraries round a frequency to one of two neighbouring floats. The angle of a row is
// off by that times its position, and each of sine and cosine by no more than the angle: 1.2e-3 at
// position 5000, where another formula (n-1, positions from one) is off by 0.1 and more.
double tolerance_of(const SinusoidOptions& sinusoid, int64_t length) {
  const double last =
      std::abs(sinusoid.start()) + std::abs(sinusoid.step()) * static_cast<double>(length);
  return 0x1p-22 * std::max(1.0, last) * std::max(1.0, std::abs(sinusoid.angle_scale()));
}

at::Tensor compute(const SinusoidOptions& sinusoid, int64_t length, const at::Tensor& like) {
  // Rounded once, as when the module is converted.
  const auto wanted = like.options().device(at::kCPU).requires_grad(false);
  const bool exact = sinusoid.precision() == Precision::Exact;
  const auto rows = sinusoid_table(sinusoid, length, exact ? wanted : at::TensorOptions());
  return rows.numel() == like.numel() ? rows.to(wanted).view(like.sizes()) : at::Tensor();
}

}  // namespace

ComputedTable computed_table(const std::string& name, int64_t row_axis, const at::Tensor& tensor,
                             const SinusoidOptions& sinusoid, int64_t length) {
  const int64_t rows = tensor.size(row_axis);
  if (sinusoid.row_count(length) != rows) length = rows;
  return {name, row_axis, [=] { return compute(sinusoid, length, tensor); },
          tolerance_of(sinusoid, length)};
}

}  // namespace posenc
