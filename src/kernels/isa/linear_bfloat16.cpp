// x W^T + b in bfloat16: bfloat16.h has the arithmetic. Compiled once per instruction set.
#include "kernels/bfloat16.h"
#include "kernels/isa/packed_tiles.h"
#include "kernels/isa/pairs.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::bfloat16::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;
using namespace posenc::kernels::inference::POSENC_ISA;

static_assert(kBlock == kBlockColumns && kPair * int64_t{sizeof(BFloat16)} == kStepBytes);

struct ProductBFloat16 {
  using Sums = Floats;
  static constexpr int kMostRows = kPairSums / 2;
  static constexpr int64_t kColumns = 32;
  static constexpr bool kOneSpan = true;
  const LinearRequest& request;

  POSENC_INLINE int64_t row_elements() const { return bfloat16::row_elements(request.inner); }
  static POSENC_INLINE auto first_sums(int64_t, int64_t) {
    return [](int64_t) __attribute__((always_inline)) { return Floats{}; };
  }
  static POSENC_INLINE Pairs weights(const BFloat16* from) { return load_pairs(from); }
  static POSENC_INLINE Pairs step(const BFloat16* from) { return broadcast_pair(from); }
  static POSENC_INLINE void add(Floats& sum, const Pairs& w, const Pairs& x) {
    add_pairs(sum, w, x);
  }
  static POSENC_INLINE auto results(int64_t, int64_t) {
    return [](int64_t, Floats sum) __attribute__((always_inline)) { return sum; };
  }
  static POSENC_INLINE Floats plus(Floats y, Floats more) { return flushed(y + flushed(more)); }
};

__attribute__((noinline)) void multiply(const LinearRequest& p, int64_t begin, int64_t end) {
  multiply_packed(ProductBFloat16{p}, begin * kBlock, end * kBlock);
}

void linear(const LinearRequest& p, int64_t begin, int64_t end) {
  const Flushing flushing;
  multiply(p, begin, end);
}

}  // namespace

const LinearKernels linear_bfloat16_kernels = {linear};

}  // namespace posenc::kernels::bfloat16::POSENC_ISA
