// Floats to bfloat16 and back, and the packing of a weight: bfloat16.h has the arithmetic. Compiled
// once per instruction set.
#include "kernels/bfloat16.h"
#include "kernels/isa/pairs.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::bfloat16::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;
using namespace posenc::kernels::inference::POSENC_ISA;

static_assert(kBlock == kWide);

void round_request(const RoundRequest& p, int64_t begin, int64_t end) {
  round_rows(p.x + begin * p.x_stride, p.x_stride, p.inner, end - begin,
             p.out + begin * row_elements(p.inner));
}

// Row n of a weight, as column n of a block.
void pack_row(const PackRequest& p, int64_t n) {
  BFloat16* const to = p.out + n / kBlock * kBlock * row_elements(p.inner) + n % kBlock * kPair;
  by_sixteen(p.inner, [&](int64_t i, int64_t n_left) {
    Sixteen rounded = {};
    if (n < p.outer) rounded = round_wide(read(p.weight + n * p.weight_stride + i, n_left));
    for (int64_t k = 0; k < n_left; k += kPair) {
      const BFloat16 pair[kPair] = {rounded[k], rounded[k + 1]};
      memcpy(to + (i + k) * kBlock, pair, sizeof pair);
    }
  });
}

void pack_weight(const PackRequest& p, int64_t begin, int64_t end) {
  for (int64_t n = begin * kBlock; n < end * kBlock; ++n) pack_row(p, n);
}

void unpack_rows(const UnpackRequest& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t n = p.rows[i];
    const BFloat16* const from =
        p.weight + n / kBlock * kBlock * row_elements(p.inner) + n % kBlock * kPair;
    float* const out = p.out + i * p.inner;
    for (int64_t k = 0; k < p.inner; ++k)
      out[k] =
          __builtin_bit_cast(float, uint32_t{from[k / kPair * kPair * kBlock + k % kPair]} << 16);
  }
}

}  // namespace

const RoundKernels round_bfloat16_kernels = {round_request, pack_weight, unpack_rows};

}  // namespace posenc::kernels::bfloat16::POSENC_ISA
