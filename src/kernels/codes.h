// Requests of the kernels that store vectors in 1 or 8 bits an entry and compare those of 1 bit,
// and the functions that take them. C headers only: the sources in isa/ are compiled once per
// instruction set.
//
//   codes.cpp   level = min(trunc(max((x - start) / step, 0)), 255) of each entry, where each
//               operation rounds to float32 and start and step are those of its column; the bit
//               x > 0 of each entry, the first one of a byte being its highest; the number of bits
//               in which two rows differ
//
// Levels and bytes of bits are written xor `flip`: 0x80 makes the int8 that is 128 less. All sets
// give the same bits.
#pragma once
#include <stdint.h>

namespace posenc::kernels::codes {

constexpr int64_t packed_bytes(int64_t width) { return (width + 7) / 8; }

struct LevelsRequest {
  const float* x;  // (rows, width)
  int64_t width;
  const float *start, *step;  // (width)
  uint8_t flip;
  uint8_t* out;  // (rows, width)
};

struct PackRequest {
  const float* x;  // (rows, width)
  int64_t width;
  uint8_t flip;
  uint8_t* out;  // (rows, packed_bytes(width)); bits after the last entry are 0 before the flip
};

// The least and the largest number of each column.
struct RangesRequest {
  const float* x;  // (rows, width)
  int64_t rows, width;
  float *least, *most;  // (width): filled with the first row
};

struct HammingRequest {
  const uint8_t *a, *b;  // (rows, bytes), (columns, bytes)
  int64_t rows, columns, bytes;
  int32_t* out;  // (rows, columns)
};

struct CodesKernels {
  // Rows [begin, end). Returns whether all of their numbers are finite.
  bool (*levels)(const LevelsRequest& request, int64_t begin, int64_t end);
  void (*pack)(const PackRequest& request, int64_t begin, int64_t end);  // rows [begin, end)
  // Columns [begin, end). Returns whether all of their numbers are finite.
  bool (*ranges)(const RangesRequest& request, int64_t begin, int64_t end);
  void (*hamming)(const HammingRequest& request, int64_t begin, int64_t end);  // columns of out
};

}  // namespace posenc::kernels::codes
