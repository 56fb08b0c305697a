// x W^T + b in 8 bits: int8.h has the arithmetic. Compiled once per instruction set.
#include "kernels/int8.h"
#include "kernels/isa/dots.h"
#include "kernels/isa/packed_tiles.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

static_assert(kBlock == kBlockColumns && kStep == kStepBytes);

struct ProductInt8 {
  using Sums = POSENC_ISA::Sums;
  static constexpr int kMostRows = kMostSums / 2;
  static constexpr int64_t kColumns = 64;
  const LinearRequest& request;

  POSENC_INLINE int64_t row_elements() const { return row_bytes(request.inner); }
  POSENC_INLINE auto first_sums(int64_t row) const {
    const Words minus_zero = static_cast<uint32_t>(request.x_minus_zeros[row]) + Words{};
    return [ =, sums = request.weight_sums ](int64_t n) __attribute__((always_inline)) {
      return sums_from(reinterpret_cast<Ints>(minus_zero * load<Words>(sums + n)));
    };
  }
  static POSENC_INLINE Weights weights(const int8_t* from) { return load_weights(from); }
  static POSENC_INLINE Bytes4 step(const uint8_t* from) { return load_bytes4(from); }
  static POSENC_INLINE void add(Sums& sums, const Weights& w, const Bytes4& x) {
    POSENC_ISA::add(sums, w, x);
  }
  POSENC_INLINE auto results(int64_t row) const {
    const Floats unit = request.x_units[row] - Floats{};
    return [ =, units = request.weight_units ](int64_t n, const Sums& sums)
        __attribute__((always_inline)) {
      return __builtin_convertvector(total(sums), Floats) * load<Floats>(units + n) * unit;
    };
  }
  static POSENC_INLINE Floats plus(Floats y, Floats more) { return y + more; }
};

void linear(const LinearRequest& p, int64_t begin, int64_t end) {
  multiply_packed(ProductInt8{p}, begin * kBlock, end * kBlock);
}

}  // namespace

const LinearKernels linear_int8_kernels = {linear};

}  // namespace posenc::kernels::int8::POSENC_ISA
