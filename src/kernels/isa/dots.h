// Exact sums of products of bytes: the same functions for each instruction set. A register of a
// packed weight holds four elements of kFloats columns (int8.h). Included by the kernel sources,
// inside the instruction set's own namespace.
//
//   kMostSums   how many sums the registers hold in addition to the operands
//   kOffset     what is added to the elements of x, so that they are unsigned: 128 or 0
//   narrow_weight(to, q)  stores sixteen elements of a weight in a byte each
//   narrow_x(to, q)       the same of x, with kOffset: 128 + kOffset becomes 127 + kOffset
//   Sums        the sums of kFloats columns, perhaps in two parts each
//   sums_from(x)  those of the numbers x and no products
//   Weights     a register of a packed weight, prepared for several rows of x
//   Bytes4      four elements of a row of x, for all columns
//   add(s, w, x)  s += the four products of each column. Nothing saturates
//   total(s)    the sums
#pragma once
#if defined(POSENC_GENERIC)
#include "kernels/isa/dots_generic.h"
#elif defined(__x86_64__)
#include "kernels/isa/dots_x86.h"
#else
#include "kernels/isa/dots_neon.h"
#endif
