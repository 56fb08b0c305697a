// The random bits of at::dropout on the CPU, many at a time. Compiled once per instruction set.
//
// ATen keeps an element if its uniform number is below 1 - p. Where MKL is used on an Intel
// processor, the numbers are those of MCG31m1; elsewhere each is made of two words of the
// generator's mt19937, one element at a time. Both are integer arithmetic, so computing many
// elements at a time gives the same bits. The reference paths are in the test (ATen's generator,
// and the recurrences word by word).
#include "kernels/embed.h"
#include "kernels/isa/embed_lanes.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

constexpr int kWords = 624, kMiddle = 397;

POSENC_INLINE uint32_t twisted(uint32_t far, uint32_t here, uint32_t next) {
  const uint32_t mixed = (here & 0x80000000) | (next & 0x7fffffff);
  return far ^ (mixed >> 1) ^ (-(next & 1) & 0x9908b0df);
}

void twist(uint32_t* state) {
  // In place: a vector of words is read before it is written, and the nearest word written by an
  // earlier step is 227 places back.
  POSENC_INDEPENDENT
  for (int i = 0; i < kWords - kMiddle; ++i)
    state[i] = twisted(state[i + kMiddle], state[i], state[i + 1]);
  POSENC_INDEPENDENT
  for (int i = kWords - kMiddle; i < kWords - 1; ++i)
    state[i] = twisted(state[i + kMiddle - kWords], state[i], state[i + 1]);
  state[kWords - 1] = twisted(state[kMiddle - 1], state[kWords - 1], state[0]);
}

POSENC_INLINE Words tempered(Words y) {
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680;
  y ^= y << 15 & 0xefc60000;
  return y ^ y >> 18;
}

POSENC_INLINE uint64_t keep(Words words, int64_t limit) {
  // The first word of a pair is the high half of ATen's 64-bit number, but the low half in memory.
  typedef uint64_t Pairs __attribute__((vector_size(kBytes)));
  const Pairs pair = reinterpret_cast<Pairs>(tempered(words));
  const Pairs number = (pair << 32 | pair >> 32) & ((uint64_t{1} << 53) - 1);
  return signs(reinterpret_cast<Longs>(number) - limit);  // negative where below the limit
}

uint64_t keep_mt19937(const uint32_t* words, int n, uint64_t limit) {
  uint64_t bits = 0;
  int i = 0;
  for (; i + kDoubles <= n; i += kDoubles)
    bits |= keep(load<Words>(words + 2 * i), static_cast<int64_t>(limit)) << i;
  if (i < n) {
    Words rest = {};
    memcpy(&rest, words + 2 * i, sizeof(uint64_t) * static_cast<size_t>(n - i));
    const uint64_t last = keep(rest, static_cast<int64_t>(limit));
    bits |= (last & ((uint64_t{1} << (n - i)) - 1)) << i;
  }
  return bits;
}

// x <- x a^8 mod 2^31 - 1, in each of eight lanes that are one step apart.
uint64_t keep_mcg31(uint64_t* x, uint64_t limit) {
  constexpr uint64_t kModulus = 0x7fffffff;
  constexpr uint64_t kStride = [] {
    uint64_t power = 1;
    for (int i = 0; i < kMcgLanes; ++i) power = power * 1132489760 % kModulus;
    return power;
  }();
  uint64_t bits = 0;
  uint64_t lane[kMcgLanes];
  memcpy(lane, x, sizeof lane);
  for (int i = 0; i < 64; i += kMcgLanes) {
    for (int k = 0; k < kMcgLanes; ++k) bits |= (lane[k] - limit) >> 63 << (i + k);
    for (int k = 0; k < kMcgLanes; ++k) {
      const uint64_t product = (lane[k] & 0xffffffff) * kStride;  // below 2^62
      const uint64_t sum = (product & kModulus) + (product >> 31);
      lane[k] = sum < kModulus ? sum : sum - kModulus;
    }
  }
  memcpy(x, lane, sizeof lane);
  return bits;
}

}  // namespace

const RandomKernels random_kernels = {twist, keep_mt19937, keep_mcg31};

}  // namespace posenc::kernels::embed::POSENC_ISA
