// What vector types cannot express: the same functions for each instruction set, with the same
// results, except that a set without fused multiply-add rounds twice. Only these files name
// intrinsics. What each function does is said in ops_x86.h.
#pragma once
#if defined(POSENC_GENERIC)
#include "kernels/isa/ops_generic.h"
#elif defined(__x86_64__)
#include "kernels/isa/ops_x86.h"
#else
#include "kernels/isa/ops_neon.h"
#endif
