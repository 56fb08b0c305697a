// Residual and layer norm, in one pass over memory. Compiled once per instruction set.
//
// The reference paths are at::add and at::layer_norm.
#include <math.h>

#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// sum = x + y; returns the mean.
float add_row(const AddNormRequest& p, const float* x, const float* y, float* sum) {
  Wide all_of = {};
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    Wide s = read(x + i, n);
    if (y != nullptr) {
      const Wide other = read(y + i, n);
      s = each([&](int part) { return s.part[part] + other.part[part]; });
    }
    write(sum + i, s, n);
    all_of = each([&](int part) { return all_of.part[part] + s.part[part]; });
  });
  return total(all_of) / static_cast<float>(p.width);
}

void norm_row(const AddNormRequest& p, const float* sum, float mean, float* out) {
  Wide squares = {};
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    float middle[kWide];
    for (float& one : middle) one = mean;  // padding equal to the mean adds nothing to the variance
    memcpy(middle, sum + i, sizeof(float) * static_cast<size_t>(n));
    const Wide s = load_wide(middle);
    squares = each([&](int part) {
      const Floats away = s.part[part] - broadcast(mean);
      return fma(away, away, squares.part[part]);
    });
  });
  const float variance = total(squares) / static_cast<float>(p.width);
  const Floats scale = broadcast(1.0f / sqrtf(variance + p.eps)), middle = broadcast(mean);
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    const Wide s = read(sum + i, n), weight = read(p.weight + i, n);
    Wide y = each([&](int part) { return (s.part[part] - middle) * scale * weight.part[part]; });
    if (p.bias != nullptr) {
      const Wide bias = read(p.bias + i, n);
      y = each([&](int part) { return y.part[part] + bias.part[part]; });
    }
    write(out + i, y, n);
  });
}

void add_norm(const AddNormRequest& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * p.width;
    float* const out = p.out != nullptr ? p.out + at : nullptr;
    float* const sum = p.sum != nullptr ? p.sum + at : out;
    const float mean = add_row(p, p.x + at, p.y != nullptr ? p.y + at : nullptr, sum);
    if (out != nullptr) norm_row(p, sum, mean, out);
  }
}

}  // namespace

const AddNormKernels add_norm_kernels = {add_norm};

}  // namespace posenc::kernels::inference::POSENC_ISA
