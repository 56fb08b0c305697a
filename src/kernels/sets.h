// The instruction sets that every kernel source is compiled for on this architecture, slowest
// first. cmake/posenc_kernels.cmake has the same names, with the compiler's flags.
#pragma once

// X(set, whether this processor supports it). `generic` is written without intrinsics, for any
// compiler and any processor: it is chosen only if there is no other set.
#if defined(__x86_64__)
#define POSENC_FOR_EACH_SET(X)   \
  X(generic, true)               \
  X(sse2, true)                  \
  X(avx2, platform::runs_avx2()) \
  X(avx512, platform::runs_avx512())
#elif defined(__aarch64__)
#define POSENC_FOR_EACH_SET(X) \
  X(generic, true)             \
  X(neon, true)
#else
#define POSENC_FOR_EACH_SET(X) X(generic, true)
#endif
