// Requests of the kernels that multiply in 8 bits, and the functions that take them. C headers
// only: the sources in isa/ are compiled once per instruction set.
//
//   quantize_int8.cpp   floats to 8 bits and back; packs a weight
//   linear_int8.cpp     x W^T + b of quantised rows and a packed weight, for one row to many
//   attention_int8.cpp  attention of whole sequences, with the products of queries and keys in 8
//   bits
//
// A row w of a weight is stored as the integers q and one float, its unit:
//
//   half  = max |w|
//   scale = 127 / half, unit = half / 127       each rounded once, to float32
//   q     = nearest(w * scale)
//
// where nearest() is the nearest integer of what was rounded to float32, ties to even. A row x of
// an input has a zero point as well, so that its levels are those between its least and its largest
// number, or 0:
//
//   least = min(x, 0), most = max(x, 0)         the row's
//   half  = most / 2 - least / 2                rounded once, to float32
//   scale, unit                                 the same
//   zero  = nearest(-least * scale) - 127       what 0 becomes
//   q     = min(nearest(x * scale) + zero, 127)
//
// so that no q is -128. If the largest absolute value of a row is below 2^-100, all q, `zero` and
// the unit are 0, because 127 / half might not be finite. If any is infinite or NaN, all q and
// `zero` are 0, and the unit is NaN. With the sum exact,
//
//   out = ((float(sum over k of (qx[k] - zero) * qw[k]) * unit of w) * unit of x) + bias
//
// where the conversion, both products and the addition round to float32, to nearest even, and
// nothing is fused. So all instruction sets give the same bits, with or without fused
// multiply-add, for any split of rows and columns.
//
// In attention the row of a head's query, and that of a key, are converted as that of a weight, and
//
//   score = (float(sum over k of qq[k] * qk[k]) * float(unit of query * scale)) * unit of key
//
// with the same roundings, where the sequence has at least kLeastScoredKeys keys that are no
// padding. Biases and masks are added in float32; weights, their sums and their products with
// values are float32, too.
//
// With scales by block, each `scale_block` elements of a row of x, and of a row of a weight, are
// converted as if they were a row: they have a unit, and those of x a zero, of their own. The last
// block of a row may be shorter. Then
//
//   term(b) = (float(sum over k in b of (qx[k] - zero of b) * qw[k]) * unit of w in b)
//             * unit of x in b
//   out     = (((term(0) + term(1)) + term(2)) + ...) + bias
//
// where the conversion is exact, each product and each addition rounds to float32, and nothing is
// fused. A row of one block has the bits that it has with a scale for the row.
#pragma once
#include <stdint.h>

#include "kernels/inference.h"

namespace posenc::kernels::int8 {

constexpr float kLeastLargest = 0x1p-100f;
// The sum of 254 * 127 fits in 32 bits up to this many times: the most elements with one scale.
// Partial sums may wrap around.
constexpr int64_t kMostInner = 66571;
// The most elements of a scale block, which has a multiple of 16 and whose sums are exact in
// float32. With 0 a row has one scale.
constexpr int64_t kMostScaleBlock = 128;
// How many scales a row has.
constexpr int64_t scales(int64_t inner, int64_t scale_block) {
  return scale_block == 0 ? 1 : (inner + scale_block - 1) / scale_block;
}

// The fewest keys of a sequence whose scores are computed in 8 bits: about where the conversion of
// keys and queries takes less time than it saves.
constexpr int64_t kLeastScoredKeys = 64;

// A packed weight is stored in blocks of kBlock columns of the result, and in steps of kStep
// elements: [outer / kBlock][inner / kStep][kBlock][kStep], with zeros where there is no element.
// Every instruction set reads whole registers of it, in order, whatever its width.
constexpr int64_t kBlock = 16, kStep = 4;
constexpr int64_t steps(int64_t inner) { return (inner + kStep - 1) / kStep; }
constexpr int64_t padded(int64_t outer) { return (outer + kBlock - 1) / kBlock * kBlock; }
// The bytes of a quantised row, and of a packed weight.
constexpr int64_t row_bytes(int64_t inner) { return steps(inner) * kStep; }
constexpr int64_t weight_bytes(int64_t inner, int64_t outer) {
  return padded(outer) * row_bytes(inner);
}

// Rows of x in 8 bits. Sets that multiply unsigned with signed bytes store q + 128 and `zero` +
// 128, the others q and `zero`, so they have a meaning for the same set's linear kernel only.
struct QuantizeRequest {
  const float* x;  // (rows, inner)
  int64_t x_stride;
  int64_t inner, scale_block;
  uint8_t* bytes;        // (rows, row_bytes(inner))
  float* units;          // (rows, scales(inner, scale_block))
  int32_t* minus_zeros;  // the same
};

struct PackRequest {
  const float* weight;  // (outer, inner)
  int64_t weight_stride;
  int64_t inner, outer, scale_block;
  int8_t* bytes;  // weight_bytes(inner, outer): never -128
  float* units;   // (outer / kBlock, scales(inner, scale_block), kBlock)
  int32_t* sums;  // the same: of the q that have a scale
};

// Element k of row n of a packed weight: q * unit, rounded once.
struct UnpackRequest {
  const int8_t* bytes;
  const float* units;
  int64_t inner, scale_block;
  const int64_t* rows;  // those to unpack
  float* out;           // (number of rows, inner)
};

struct LinearRequest {
  const uint8_t* x;      // (rows, row_bytes(inner))
  const float* x_units;  // (rows, scales(inner, scale_block))
  const int32_t* x_minus_zeros;
  int64_t rows;
  const int8_t* weight;  // packed, with its units and sums
  const float* weight_units;
  const int32_t* weight_sums;
  const float* bias;  // (outer), or null
  int64_t inner, outer, scale_block;
  float* out;  // (rows, outer)
  int64_t out_stride;
};

struct QuantizeKernels {
  void (*quantize)(const QuantizeRequest& request, int64_t begin,
                   int64_t end);                                         // rows [begin, end)
  void (*pack)(const PackRequest& request, int64_t begin, int64_t end);  // blocks of kBlock columns
  void (*unpack)(const UnpackRequest& request, int64_t begin, int64_t end);  // of request.rows
};
struct LinearKernels {
  // Columns of blocks [begin, end).
  void (*run)(const LinearRequest& request, int64_t begin, int64_t end);
};

// The scratch of attention_int8.cpp: a panel of queries and its scores, one head's keys with their
// units, and its values; or that of attention in float32.
constexpr int64_t attention_floats(int64_t width, int64_t keys) {
  const int64_t own =
      inference::kPanelRows * (steps(width) + keys) + keys * (steps(width) + 1 + width);
  const int64_t wide = inference::sequence_floats(width, keys);
  return own > wide ? own : wide;
}

}  // namespace posenc::kernels::int8
