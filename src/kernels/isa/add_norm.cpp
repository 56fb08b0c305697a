// Residual and norm, in one pass over memory. Compiled once per instruction set.
//
// The reference paths are at::add, at::layer_norm, and x * rsqrt(mean of squares + eps) * weight.
#include <math.h>

#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// sum = x + y; returns the total of f(total so far, sum), lane by lane.
template <typename F>
POSENC_INLINE float add_row(const AddNormRequest& p, const float* x, const float* y, float* sum,
                            F f) {
  Wide all_of = {};
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    Wide s = read(x + i, n);
    if (y != nullptr) {
      const Wide other = read(y + i, n);
      s = each([&](int part) { return s.part[part] + other.part[part]; });
    }
    write(sum + i, s, n);
    all_of = each([&](int part) { return f(all_of.part[part], s.part[part]); });
  });
  return total(all_of);
}

template <bool kPlusOne>
POSENC_INLINE Floats factor_of(Floats weight) {
  return kPlusOne ? broadcast(1.0f) + weight : weight;
}

template <bool kPlusOne>
void layer_norm_row(const AddNormRequest& p, const float* sum, float mean, float* out) {
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
    Wide y = each([&](int part) {
      return (s.part[part] - middle) * scale * factor_of<kPlusOne>(weight.part[part]);
    });
    if (p.bias != nullptr) {
      const Wide bias = read(p.bias + i, n);
      y = each([&](int part) { return y.part[part] + bias.part[part]; });
    }
    write(out + i, y, n);
  });
}

template <bool kPlusOne>
void rms_norm_row(const AddNormRequest& p, const float* sum, float mean_square, float* out) {
  const Floats scale = broadcast(1.0f / sqrtf(mean_square + p.eps));
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    const Wide s = read(sum + i, n), weight = read(p.weight + i, n);
    const auto y = [&](int part) {
      return s.part[part] * scale * factor_of<kPlusOne>(weight.part[part]);
    };
    write(out + i, each(y), n);
  });
}

void affine_row(const AddNormRequest& p, const float* sum, float* out) {
  by_sixteen(p.width, [&](int64_t i, int64_t n) {
    const Wide s = read(sum + i, n), weight = read(p.weight + i, n);
    Wide y = each([&](int part) { return s.part[part] * weight.part[part]; });
    if (p.bias != nullptr) {
      const Wide bias = read(p.bias + i, n);
      y = each([&](int part) { return y.part[part] + bias.part[part]; });
    }
    write(out + i, y, n);
  });
}

void add_norm(const AddNormRequest& p, int64_t begin, int64_t end) {
  const auto width = static_cast<float>(p.width);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * p.width;
    const float *const x = p.x + at, *const y = p.y != nullptr ? p.y + at : nullptr;
    float* const out = p.out != nullptr ? p.out + at : nullptr;
    float* const sum = p.sum != nullptr ? p.sum + at : out;
    if (p.kind == NormKind::Layer || p.kind == NormKind::LayerPlusOne) {
      const float all_of =
          add_row(p, x, y, sum, [](Floats so_far, Floats s) { return so_far + s; });
      const auto norm_row =
          p.kind == NormKind::Layer ? layer_norm_row<false> : layer_norm_row<true>;
      if (out != nullptr) norm_row(p, sum, all_of / width, out);
      continue;
    }
    const float squares =
        add_row(p, x, y, sum, [](Floats so_far, Floats s) { return fma(s, s, so_far); });
    if (out == nullptr) continue;
    if (p.kind == NormKind::Affine) {
      affine_row(p, sum, out);
      continue;
    }
    const auto norm_row = p.kind == NormKind::RMS ? rms_norm_row<false> : rms_norm_row<true>;
    norm_row(p, sum, squares / width, out);
  }
}

}  // namespace

const AddNormKernels add_norm_kernels = {add_norm};

}  // namespace posenc::kernels::inference::POSENC_ISA
