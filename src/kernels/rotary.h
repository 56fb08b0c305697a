// The request of the rotary embedding's kernel (isa/rotary.cpp), and the function that takes it. C
// headers only: the source is compiled once per instruction set.
#pragma once
#include <stdint.h>

#include "kernels/embed.h"

namespace posenc::kernels::rotary {

// As for embeddings: the half types round after each operation, as ATen does, and the Exact ones
// compute in float32 and round once, at the end.
using embed::kTypes;
using embed::Type;

// cos and sin, with a row for every token, or with `ids` for every position. The first member of
// pair i is multiplied by entry i * step, the second by the entry `second` places after that.
struct Angles {
  const void *cos, *sin;
  int64_t batch_stride, row_stride;  // elements; batch_stride 0: one row for a whole batch
  embed::Integers ids = {};  // token `row` of a batch: position ids[batch * ids_batch + row]
  int64_t ids_batch;
  int64_t step, second;
  bool is_float;  // float32 whatever the type of x; else as x
  bool round;     // to x's type before use
};

// q or k, and its destination, which may be x itself with the same strides.
struct Heads {
  const void* x;
  void* out;
  int64_t count;
  int64_t x_batch, x_head, x_row;  // strides in elements; a head's channels are side by side
  int64_t out_batch, out_head, out_row;
};

// Where autograd adds zeros to a gradient, which turns a -0 into 0: to the sums of a pair if each
// of its channels is a slice, and to whole heads if the rotating channels are a slice.
enum Zeros : int { kNoZeros = 0, kToPairs = 1, kToHeads = 2 };

// y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin for each pair of the channels first ... first + 2 *
// pairs - 1; the others are copied.
struct Rotation {
  Angles angles;
  int64_t length;  // rows of one sequence
  int64_t pairs;
  int64_t width;  // channels of a head
  int64_t first;
  bool read_adjacent, write_adjacent;  // pairs are channels 2i, 2i + 1; else i, i + pairs
  bool negative;                       // by the negated sine
  bool transposed;                     // the matrix of each pair is transposed, as for the gradient
  int zeros;                           // of Zeros
  bool stream;  // non-temporal stores, which pay off for outputs larger than the caches
  int count;    // of heads
  Heads heads[2];
};

struct RotaryKernels {
  // Rotates the rows [begin, end) of batch * length; `scratch` is aligned to a cache line and has
  // scratch_floats(pairs) floats.
  void (*rotate[kTypes])(const Rotation& request, int64_t begin, int64_t end, float* scratch);
};

// The factors of as many rows as fill the L1 cache are prepared together, since longer runs of
// memory are read faster; half as many for the half types, which are limited by arithmetic.
constexpr int64_t kBlockFloats = 8192;
// An array for each pair, rounded up to whole lines.
constexpr int64_t padded_pairs(int64_t pairs) { return (pairs + 31) / 32 * 32; }
// Four factors for each pair, or twelve if the kernel has them in two forms; one row of the table
// during conversion; and one head, which may be float64.
constexpr int64_t scratch_floats(int64_t pairs) {
  const int64_t padded = padded_pairs(pairs), row = 12 * padded;
  return (row > kBlockFloats ? row : kBlockFloats) + 20 * padded;
}

}  // namespace posenc::kernels::rotary
