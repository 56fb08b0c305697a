// Requests of the kernels that multiply in 8 bits, and the functions that take them. C headers
// only: the sources in isa/ are compiled once per instruction set.
//
//   quantize_int8.cpp  floats to 8 bits and back; packs a weight
//   linear_int8.cpp    x W^T + b of quantised rows and a packed weight, for one row to many
//
// A row of numbers x is stored as the integers q and one float, its unit:
//
//   largest = max |x|                                   NaN if any x is NaN
//   scale   = 127 / largest, unit = largest / 127       each rounded once, to float32
//   q       = x * scale, rounded once to float32, and then to the nearest integer, ties to even
//
// so |q| <= 127. If `largest` is below 2^-100, all q and the unit are 0, because 127 / largest
// might not be finite. If it is infinite or NaN, all q are 0 and the unit is NaN. With the sum
// exact,
//
//   out = ((float(sum over k of qx[k] * qw[k]) * unit of w) * unit of x) + bias
//
// where the conversion, both products and the addition round to float32, to nearest even, and
// nothing is fused. So all instruction sets give the same bits, with or without fused
// multiply-add, for any split of rows and columns.
#pragma once
#include <stdint.h>

namespace posenc::kernels::int8 {

constexpr float kLeastLargest = 0x1p-100f;
// The sum of 127 * 127 fits in 32 bits up to this many times. Partial sums may wrap around.
constexpr int64_t kMostInner = 133144;

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

// Rows of x in 8 bits. Sets that multiply unsigned with signed bytes store q + 128, the others q,
// so the bytes have a meaning for the same set's linear kernel only.
struct QuantizeRequest {
  const float* x;  // (rows, inner)
  int64_t x_stride;
  int64_t inner;
  uint8_t* bytes;  // (rows, row_bytes(inner))
  float* units;    // (rows)
};

struct PackRequest {
  const float* weight;  // (outer, inner)
  int64_t weight_stride;
  int64_t inner, outer;
  int8_t* bytes;     // weight_bytes(inner, outer): never -128
  float* units;      // (padded(outer))
  int32_t* offsets;  // (padded(outer)): what a sum starts from, -128 * sum of q where x is q + 128
};

// Element k of row n of a packed weight: q * unit, rounded once.
struct UnpackRequest {
  const int8_t* bytes;
  const float* units;
  int64_t inner;
  const int64_t* rows;  // those to unpack
  float* out;           // (number of rows, inner)
};

struct LinearRequest {
  const uint8_t* x;      // (rows, row_bytes(inner))
  const float* x_units;  // (rows)
  int64_t rows;
  const int8_t* weight;  // packed, with its units and offsets
  const float* weight_units;
  const int32_t* weight_offsets;
  const float* bias;  // (outer), or null
  int64_t inner, outer;
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

}  // namespace posenc::kernels::int8
