// The instruction sets that every kernel source is compiled for on this architecture, slowest
// first. cmake/posenc_kernels.cmake has the same names, with the compiler's flags.
#pragma once

// X(set, base, whether this processor supports it). `generic` is written without intrinsics, for
// any compiler and any processor: it is chosen only if there is no other set. A set whose base is
// another one adds instructions for products in 8 or 16 bits: only the kernels of int8.h and
// bfloat16.h are compiled for it, and the others are its base's.
#if defined(__x86_64__)
#define POSENC_FOR_EACH_SET(X)                       \
  X(generic, generic, true)                          \
  X(sse2, sse2, true)                                \
  X(avx2, avx2, platform::runs_avx2())               \
  X(avx2vnni, avx2, platform::runs_avx2vnni())       \
  X(avx512, avx512, platform::runs_avx512())         \
  X(avx512vnni, avx512, platform::runs_avx512vnni()) \
  X(avx512bf16, avx512, platform::runs_avx512bf16())
#elif defined(__aarch64__)
#define POSENC_FOR_EACH_SET(X) \
  X(generic, generic, true)    \
  X(neon, neon, true)          \
  X(neondot, neon, platform::runs_neondot())
#else
#define POSENC_FOR_EACH_SET(X) X(generic, generic, true)
#endif
