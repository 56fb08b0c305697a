// Vectors in 1 or 8 bits an entry: codes.h has the arithmetic. Compiled once per instruction set.
#include "kernels/codes.h"

#include "kernels/isa/ops.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::codes::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

bool levels(const LevelsRequest& p, int64_t begin, int64_t end) {
  const float* const start = p.start;
  const float* const step = p.step;
  const int64_t width = p.width;  // here, since bytes that are written could be those of `p`
  const int32_t flip = p.flip;
  int32_t is_strange = 0;  // for x - x, which is NaN unless x is finite
  for (int64_t row = begin; row < end; ++row) {
    const float* const x = p.x + row * width;
    uint8_t* const out = p.out + row * width;
    POSENC_INDEPENDENT
    for (int64_t j = 0; j < width; ++j) {
      const float level = (x[j] - start[j]) / step[j];
      const float above = level > 0.0f ? level : 0.0f;
      out[j] = static_cast<uint8_t>(static_cast<int32_t>(above < 255.0f ? above : 255.0f) ^ flip);
      is_strange |= x[j] - x[j] != 0.0f;
    }
  }
  return is_strange == 0;
}

bool ranges(const RangesRequest& p, int64_t begin, int64_t end) {
  float* const least = p.least;
  float* const most = p.most;
  int32_t is_strange = 0;
  for (int64_t row = 0; row < p.rows; ++row) {
    const float* const x = p.x + row * p.width;
    POSENC_INDEPENDENT
    for (int64_t j = begin; j < end; ++j) {
      least[j] = row == 0 || x[j] < least[j] ? x[j] : least[j];
      most[j] = row == 0 || x[j] > most[j] ? x[j] : most[j];
      is_strange |= x[j] - x[j] != 0.0f;
    }
  }
  return is_strange == 0;
}

constexpr int kBits = 64;  // that are packed at a time

// The bits in each byte, in the opposite order.
POSENC_INLINE uint64_t reversed_in_bytes(uint64_t x) {
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
  x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
  return (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
}

POSENC_INLINE void pack_some(const float* x, uint64_t flip, uint8_t* out, int64_t bytes) {
  uint64_t bits = 0;
  for (int i = 0; i < kBits; i += kFloats) bits |= greater(load<Floats>(x + i), Floats{}) << i;
  bits = reversed_in_bytes(bits) ^ flip;
  for (int64_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(bits >> 8 * i);
}

void pack(const PackRequest& p, int64_t begin, int64_t end) {
  const int64_t bytes = packed_bytes(p.width), whole = p.width / kBits * kBits;
  const uint64_t flip = p.flip * uint64_t{0x0101010101010101};
  for (int64_t row = begin; row < end; ++row) {
    const float* const x = p.x + row * p.width;
    uint8_t* const out = p.out + row * bytes;
    for (int64_t j = 0; j < whole; j += kBits) pack_some(x + j, flip, out + j / 8, kBits / 8);
    if (whole == p.width) continue;
    float last[kBits] = {};
    memcpy(last, x + whole, sizeof(float) * static_cast<size_t>(p.width - whole));
    pack_some(last, flip, out + whole / 8, bytes - whole / 8);
  }
}

POSENC_INLINE int32_t ones(uint64_t x) {
#if defined(__POPCNT__) || defined(__aarch64__)
  return __builtin_popcountll(x);
#else
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  return static_cast<int32_t>((((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101) >> 56);
#endif
}

POSENC_INLINE int32_t distance(const uint8_t* a, const uint8_t* b, int64_t bytes) {
  int32_t sum = 0;
  int64_t i = 0;
  for (; i + 8 <= bytes; i += 8) sum += ones(load<uint64_t>(a + i) ^ load<uint64_t>(b + i));
  if (i == bytes) return sum;
  uint64_t left[2] = {};
  memcpy(left, a + i, static_cast<size_t>(bytes - i));
  memcpy(left + 1, b + i, static_cast<size_t>(bytes - i));
  return sum + ones(left[0] ^ left[1]);
}

// Some columns at a time, which stay in the first cache for all rows.
void hamming(const HammingRequest& p, int64_t begin, int64_t end) {
  constexpr int64_t kCache = 1 << 14;
  const int64_t some = 1 + kCache / (p.bytes + 1);
  for (int64_t first = begin; first < end; first += some) {
    const int64_t last = first + some < end ? first + some : end;
    for (int64_t row = 0; row < p.rows; ++row) {
      const uint8_t* const a = p.a + row * p.bytes;
      int32_t* const out = p.out + row * p.columns;
      for (int64_t j = first; j < last; ++j) out[j] = distance(a, p.b + j * p.bytes, p.bytes);
    }
  }
}

}  // namespace

const CodesKernels codes_kernels = {levels, pack, ranges, hamming};

}  // namespace posenc::kernels::codes::POSENC_ISA
