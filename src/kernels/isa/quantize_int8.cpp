// Floats to 8 bits and back, and the packing of a weight: int8.h has the arithmetic. Compiled once
// per instruction set.
#include "kernels/isa/levels_int8.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

void quantize(const QuantizeRequest& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const Scale by =
        quantize_row<true>(p.x + row * p.x_stride, p.inner, p.bytes + row * row_bytes(p.inner));
    p.units[row] = by.unit;
    p.minus_zeros[row] = -kOffset - by.zero;
  }
}

// Row n of a weight, as column n of a block; one of zeros if there is no such row.
void pack_column(const PackRequest& p, int64_t n) {
  constexpr int64_t kStride = kBlock * kStep;
  int8_t* const to = p.bytes + n / kBlock * kBlock * row_bytes(p.inner) + n % kBlock * kStep;
  PackedRow row = {0.0f, 0};
  if (n < p.outer) {
    row = pack_row(p.weight + n * p.weight_stride, p.inner, kStride, to);
  } else {
    for (int64_t k = 0; k < steps(p.inner); ++k) memset(to + k * kStride, 0, kStep);
  }
  p.units[n] = row.unit;
  p.sums[n] = row.sum;
}

void pack(const PackRequest& p, int64_t begin, int64_t end) {
  for (int64_t n = begin * kBlock; n < end * kBlock; ++n) pack_column(p, n);
}

void unpack(const UnpackRequest& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = p.rows[i];
    const int8_t* const from =
        p.bytes + n / kBlock * kBlock * row_bytes(p.inner) + n % kBlock * kStep;
    float* const out = p.out + i * p.inner;
    const float unit = p.units[n];
    by_sixteen(p.inner, [&](int64_t k, int64_t n_left) {
      int8_t sixteen[kWide] = {};
      for (int64_t j = 0; j < kWide; j += kStep)
        if (j < n_left) memcpy(sixteen + j, from + (k + j) * kBlock, kStep);
      float wide[kWide];
      for (int j = 0; j < kWide; ++j) wide[j] = static_cast<float>(sixteen[j]) * unit;
      memcpy(out + k, wide, sizeof(float) * static_cast<size_t>(n_left));
    });
  }
}

}  // namespace

const QuantizeKernels quantize_int8_kernels = {quantize, pack, unpack};

}  // namespace posenc::kernels::int8::POSENC_ISA
