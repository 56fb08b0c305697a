// Which instruction set the kernels use: the one place that asks the processor and the environment.
#pragma once

namespace posenc::kernels {

// What cmake/posenc_kernels.cmake compiles every kernel source for, slowest first.
enum class Isa { Sse2, Avx2, Avx512 };
constexpr int kIsaCount = 3;

// By name, `sse2`, `avx2` or `avx512`; false for another one, and for one that this processor does
// not run.
bool find_isa(const char* name, Isa* found);

// The best that this processor runs; POSENC_ISA=sse2|avx2|avx512 chooses another (an unknown or
// unavailable name is ignored). Read once.
Isa chosen_isa();

}  // namespace posenc::kernels
