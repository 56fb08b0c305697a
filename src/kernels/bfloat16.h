// Requests of the kernels that multiply in bfloat16, and the functions that take them. C headers
// only: the sources in isa/ are compiled once per instruction set.
//
//   round_bfloat16.cpp      floats to bfloat16 and back; packs a weight
//   linear_bfloat16.cpp     x W^T + b of rounded rows and a packed weight, for one row to many
//   attention_bfloat16.cpp  attention of whole sequences, with both of its products in bfloat16
//
// A number is rounded to nearest, ties to even; one below 2^-126 becomes zero, with its sign.
// Products of such numbers are exact in float32. A sum over k begins with 0 and takes the products
// in pairs, of each the second first,
//
//   sum = float32(sum + x[k + 1] * w[k + 1]);  sum = float32(sum + x[k] * w[k])    k = 0, 2, ...
//
// where each result is rounded once, to nearest, ties to even, and is zero if it is below 2^-126:
// what the instruction VDPBF16PS does, and what other sets compute in float32. So all sets give
// the same bits, for any split of rows and columns, except in the neighbourhood of 2^-126 and
// 2^128 for sets that round products and sums apart, or flush before they round.
#pragma once
#include <stdint.h>

#include "kernels/inference.h"

namespace posenc::kernels::bfloat16 {

using inference::BFloat16;

// A packed weight is stored in blocks of kBlock columns of the result, and in pairs of elements:
// [outer / kBlock][inner / 2][kBlock][2], with zeros where there is no element. Every instruction
// set reads whole registers of it, in order, whatever its width.
constexpr int64_t kBlock = 16, kPair = 2;
// The elements of a rounded row, and of a packed weight.
constexpr int64_t row_elements(int64_t inner) { return (inner + kPair - 1) / kPair * kPair; }
constexpr int64_t padded(int64_t outer) { return (outer + kBlock - 1) / kBlock * kBlock; }
constexpr int64_t weight_elements(int64_t inner, int64_t outer) {
  return padded(outer) * row_elements(inner);
}

struct RoundRequest {
  const float* x;  // (rows, inner)
  int64_t x_stride;
  int64_t inner;
  BFloat16* out;  // (rows, row_elements(inner))
};

struct PackRequest {
  const float* weight;  // (outer, inner)
  int64_t weight_stride;
  int64_t inner, outer;
  BFloat16* out;  // weight_elements(inner, outer)
};

// Rows of a packed weight, widened.
struct UnpackRequest {
  const BFloat16* weight;
  int64_t inner;
  const int64_t* rows;  // those to unpack
  float* out;           // (number of rows, inner)
};

struct LinearRequest {
  const BFloat16* x;  // (rows, row_elements(inner))
  int64_t rows;
  const BFloat16* weight;  // packed
  const float* bias;       // (outer), or null
  int64_t inner, outer;
  float* out;  // (rows, outer)
  int64_t out_stride;
};

struct RoundKernels {
  void (*round)(const RoundRequest& request, int64_t begin, int64_t end);    // rows [begin, end)
  void (*pack)(const PackRequest& request, int64_t begin, int64_t end);      // blocks of columns
  void (*unpack)(const UnpackRequest& request, int64_t begin, int64_t end);  // of request.rows
};
struct LinearKernels {
  void (*run)(const LinearRequest& request, int64_t begin, int64_t end);  // blocks of columns
};
// The scratch of attention_bfloat16.cpp: scores of a panel, which hold its rounded queries before;
// and with one head's keys and values, and the panel.
constexpr int64_t score_floats(int64_t width, int64_t keys) {
  const int64_t most = (keys + 1) / 2 * 2, half = row_elements(width) / 2;
  return inference::kPanelRows * (most > half ? most : half);
}
constexpr int64_t attention_floats(int64_t width, int64_t keys) {
  const int64_t half = row_elements(width) / 2;
  return score_floats(width, keys) + (keys + 1) / 2 * padded(width) +
         (inference::kPanelRows + keys) * half;
}

}  // namespace posenc::kernels::bfloat16
