// Floats to 8 bits and back, and the packing of a weight: int8.h has the arithmetic. Compiled once
// per instruction set.
#include "kernels/isa/levels_int8.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

// Calls f(index, first, n) for the n elements of a row that have a scale, for each scale.
template <typename F>
POSENC_INLINE void each_scale(int64_t inner, int64_t scale_block, F f) {
  const int64_t length = scale_block == 0 ? inner : scale_block;
  for (int64_t i = 0, count = scales(inner, scale_block); i < count; ++i)
    f(i, i * length, i + 1 < count ? length : inner - i * length);
}

void quantize(const QuantizeRequest& p, int64_t begin, int64_t end) {
  const int64_t bytes = row_bytes(p.inner), count = scales(p.inner, p.scale_block);
  for (int64_t row = begin; row < end; ++row) {
    each_scale(p.inner, p.scale_block, [&](int64_t index, int64_t first, int64_t n) {
      const Scale by =
          quantize_row<true>(p.x + row * p.x_stride + first, n, p.bytes + row * bytes + first);
      p.units[row * count + index] = by.unit;
      p.minus_zeros[row * count + index] = -kOffset - by.zero;
    });
  }
}

// Where row n of a packed weight begins, and its scales: every kBlock bytes steps and scales
// follow.
POSENC_INLINE int64_t first_byte(int64_t n, int64_t inner) {
  return n / kBlock * kBlock * row_bytes(inner) + n % kBlock * kStep;
}
POSENC_INLINE int64_t first_scale(int64_t n, int64_t inner, int64_t scale_block) {
  return n / kBlock * kBlock * scales(inner, scale_block) + n % kBlock;
}

// Row n of a weight, as column n of a block; one of zeros if there is no such row.
void pack_column(const PackRequest& p, int64_t n) {
  constexpr int64_t kStride = kBlock * kStep;
  const int64_t at = first_scale(n, p.inner, p.scale_block);
  each_scale(p.inner, p.scale_block, [&](int64_t index, int64_t first, int64_t count) {
    int8_t* const to = p.bytes + first_byte(n, p.inner) + first * kBlock;
    PackedRow row = {0.0f, 0};
    if (n < p.outer) {
      row = pack_row(p.weight + n * p.weight_stride + first, count, kStride, to);
    } else {
      for (int64_t k = 0; k < steps(count); ++k) memset(to + k * kStride, 0, kStep);
    }
    p.units[at + index * kBlock] = row.unit;
    p.sums[at + index * kBlock] = row.sum;
  });
}

void pack(const PackRequest& p, int64_t begin, int64_t end) {
  for (int64_t n = begin * kBlock; n < end * kBlock; ++n) pack_column(p, n);
}

void unpack(const UnpackRequest& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = p.rows[i];
    const int8_t* const from = p.bytes + first_byte(n, p.inner);
    const float* const units = p.units + first_scale(n, p.inner, p.scale_block);
    float* const out = p.out + i * p.inner;
    each_scale(p.inner, p.scale_block, [&](int64_t index, int64_t first, int64_t count) {
      const float unit = units[index * kBlock];
      by_sixteen(count, [&](int64_t k, int64_t left) {
        int8_t sixteen[kWide] = {};
        for (int64_t j = 0; j < kWide; j += kStep)
          if (j < left) memcpy(sixteen + j, from + (first + k + j) * kBlock, kStep);
        float wide[kWide];
        for (int j = 0; j < kWide; ++j) wide[j] = static_cast<float>(sixteen[j]) * unit;
        memcpy(out + first + k, wide, sizeof(float) * static_cast<size_t>(left));
      });
    });
  }
}

}  // namespace

const QuantizeKernels quantize_int8_kernels = {quantize, pack, unpack};

}  // namespace posenc::kernels::int8::POSENC_ISA
