#pragma once

#include <cstdint>
#include <functional>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// What a processor can multiply at most: multiply-adds of registers, which nothing waits for.
namespace posenc::benchmarks {

/// One thread's `count` multiply-adds; null where the processor has no such instruction.
using MultiplyAdds = std::function<void(double count)>;

struct Limits {
  MultiplyAdds float32, bfloat16, int8;
};

#if defined(__x86_64__)
namespace limits {

constexpr int kSums = 12;  // more than a multiply-add's latency times two a cycle

// `step` is a multiply-add of the register `sum`, `x` and `y`. The empty statement of assembly
// keeps the compiler from computing the sums in closed form, and from leaving them out.
#define POSENC_MULTIPLY_ADDS(name, instructions, Register, zero, lanes, step)             \
  __attribute__((target(instructions))) inline void name(double count) {                  \
    Register sums[kSums], x = zero, y = zero;                                             \
    for (Register & sum : sums) sum = zero;                                               \
    const auto steps = static_cast<int64_t>(count / (kSums * (lanes)));                   \
    for (int64_t i = 0; i < steps; ++i) {                                                 \
      _Pragma("GCC unroll 12") for (Register & sum : sums) sum = step;                    \
      __asm__ volatile("" : "+v"(x), "+v"(y));                                            \
    }                                                                                     \
    _Pragma("GCC unroll 12") for (Register & sum : sums) __asm__ volatile("" ::"v"(sum)); \
  }

POSENC_MULTIPLY_ADDS(float32_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), 8,
                     _mm256_fmadd_ps(x, y, sum))
POSENC_MULTIPLY_ADDS(float32_avx512, "avx512f", __m512, _mm512_setzero_ps(), 16,
                     _mm512_fmadd_ps(x, y, sum))
POSENC_MULTIPLY_ADDS(bfloat16_avx512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), 32,
                     _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x),
                                      reinterpret_cast<__m512bh>(y)))
POSENC_MULTIPLY_ADDS(int8_avx512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), 64,
                     _mm512_dpbusd_epi32(sum, x, y))
POSENC_MULTIPLY_ADDS(int8_avx2, "avx2,avxvnni", __m256i, _mm256_setzero_si256(), 32,
                     _mm256_dpbusd_avx_epi32(sum, x, y))
#undef POSENC_MULTIPLY_ADDS

}  // namespace limits

inline Limits processor_limits() {
  Limits found;
  if (__builtin_cpu_supports("fma")) found.float32 = limits::float32_avx2;
  if (__builtin_cpu_supports("avx512f")) found.float32 = limits::float32_avx512;
  if (__builtin_cpu_supports("avx512bf16")) found.bfloat16 = limits::bfloat16_avx512;
#if defined(__GNUC__) && __GNUC__ >= 12
  if (__builtin_cpu_supports("avxvnni")) found.int8 = limits::int8_avx2;
#endif
  if (__builtin_cpu_supports("avx512vnni")) found.int8 = limits::int8_avx512;
  return found;
}
#else
inline Limits processor_limits() { return {}; }
#endif

}  // namespace posenc::benchmarks
