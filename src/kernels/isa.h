// Selects the kernels' instruction set, from what the processor supports and from POSENC_ISA.
#pragma once

namespace posenc::kernels {

// The sets that cmake/posenc_kernels.cmake compiles every kernel source for, slowest first.
enum class Isa { Sse2, Avx2, Avx512 };
constexpr int kIsaCount = 3;

// Looks up a set by name: `sse2`, `avx2` or `avx512`. Returns false for an unknown name, and for a
// set that this processor does not support.
bool find_isa(const char* name, Isa* found);

// The best set that this processor supports, unless POSENC_ISA=sse2|avx2|avx512 selects another (an
// unknown or unsupported name is ignored). Determined once.
Isa chosen_isa();

}  // namespace posenc::kernels
