// Operations that vector types cannot express: the same functions for each instruction set, with
// the same results, except that a set without fused multiply-add rounds twice. Intrinsics are used
// only in these files. ops_x86.h documents each function.
#pragma once
#if defined(POSENC_GENERIC)
#include "kernels/isa/ops_generic.h"
#elif defined(__x86_64__)
#include "kernels/isa/ops_x86.h"
#else
#include "kernels/isa/ops_neon.h"
#endif
