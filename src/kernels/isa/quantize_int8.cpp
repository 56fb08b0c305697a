// Floats to 8 bits and back, and the packing of a weight: int8.h has the arithmetic. Compiled once
// per instruction set.
#include "kernels/int8.h"
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/dots.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;
using namespace posenc::kernels::inference::POSENC_ISA;

static_assert(kStep * 4 == kWide && kBlock == kWide);

// The largest |x|, or NaN if any is NaN: their bits, as integers, are in that order.
POSENC_INLINE float largest(const float* x, int64_t n) {
  Ints most[kParts] = {};
  by_sixteen(n, [&](int64_t i, int64_t count) {
    const Wide w = read(x + i, count);
    for (int part = 0; part < kParts; ++part) {
      const Ints bits = reinterpret_cast<Ints>(bits_of(w.part[part]) & 0x7fffffffu);
      most[part] = bits > most[part] ? bits : most[part];
    }
  });
  int32_t bits = 0;
  for (const Ints& part : most)
    for (int i = 0; i < kFloats; ++i) bits = part[i] > bits ? part[i] : bits;
  float found;
  memcpy(&found, &bits, sizeof found);
  return found;
}

struct Scale {
  float scale, unit;
};
POSENC_INLINE Scale scale_for(float largest) {
  if (!(largest <= __FLT_MAX__)) return {0.0f, __builtin_nanf("")};
  if (largest < kLeastLargest) return {0.0f, 0.0f};
  return {127.0f / largest, largest / 127.0f};
}

// The integers nearest to x * scale, which adding 1.5 * 2^23 puts into the low bits.
POSENC_INLINE void quantize_sixteen(const Wide& x, float scale, uint8_t* to) {
  constexpr float kRound = 0x1.8p23f;
  Ints q[kParts];
  for (int part = 0; part < kParts; ++part) {
    const Floats rounded = x.part[part] * broadcast(scale) + broadcast(kRound);
    q[part] = reinterpret_cast<Ints>(rounded) - reinterpret_cast<Ints>(broadcast(kRound));
  }
  narrow_sixteen(to, q);
}
// The same for x, with its offset.
POSENC_INLINE void quantize_x(const Wide& x, float scale, uint8_t* to) {
  quantize_sixteen(x, scale, to);
  if constexpr (kOffset == 0) return;
  typedef uint8_t Sixteen __attribute__((vector_size(16)));
  store(to, load<Sixteen>(to) ^ static_cast<uint8_t>(kOffset));  // the same as + kOffset
}

void quantize(const QuantizeRequest& p, int64_t begin, int64_t end) {
  const int64_t bytes = row_bytes(p.inner);
  for (int64_t row = begin; row < end; ++row) {
    const float* const x = p.x + row * p.x_stride;
    uint8_t* const to = p.bytes + row * bytes;
    const Scale by = scale_for(largest(x, p.inner));
    p.units[row] = by.unit;
    if (by.scale == 0.0f) {
      memset(to, kOffset, static_cast<size_t>(bytes));
      continue;
    }
    by_sixteen(p.inner, [&](int64_t i, int64_t n) {
      if (n == kWide) return quantize_x(read(x + i, n), by.scale, to + i);
      uint8_t sixteen[kWide];
      quantize_x(read(x + i, n), by.scale, sixteen);
      memcpy(to + i, sixteen, static_cast<size_t>(bytes - i));
    });
  }
}

// Row n of a weight, as column n of a block.
void pack_row(const PackRequest& p, int64_t n) {
  int8_t* const to = p.bytes + n / kBlock * kBlock * row_bytes(p.inner) + n % kBlock * kStep;
  const bool is_row = n < p.outer;
  const float* const x = is_row ? p.weight + n * p.weight_stride : nullptr;
  const Scale by = is_row ? scale_for(largest(x, p.inner)) : Scale{0.0f, 0.0f};
  int32_t sum = 0;
  by_sixteen(p.inner, [&](int64_t i, int64_t n_left) {
    int8_t sixteen[kWide] = {};
    if (by.scale != 0.0f)
      quantize_sixteen(read(x + i, n_left), by.scale, reinterpret_cast<uint8_t*>(sixteen));
    for (const int8_t one : sixteen) sum += one;
    for (int64_t k = 0; k < n_left; k += kStep) memcpy(to + (i + k) * kBlock, sixteen + k, kStep);
  });
  p.units[n] = by.unit;
  // The low 32 bits, since -128 * 127 * kMostInner needs more: partial sums may wrap around.
  p.offsets[n] = static_cast<int32_t>(static_cast<uint32_t>(-kOffset) * static_cast<uint32_t>(sum));
}

void pack(const PackRequest& p, int64_t begin, int64_t end) {
  for (int64_t n = begin * kBlock; n < end * kBlock; ++n) pack_row(p, n);
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
