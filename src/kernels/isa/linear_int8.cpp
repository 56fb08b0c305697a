// x W^T + b in 8 bits: int8.h has the arithmetic. Compiled once per instruction set.
#include "kernels/int8.h"
#include "kernels/isa/dots.h"
#include "kernels/isa/packed_tiles.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

static_assert(kBlock == kBlockColumns && kStep == kStepBytes);

// kByBlock: a scale for each block of a row, otherwise one for the row.
template <bool kByBlock>
struct ProductInt8 {
  using Sums = POSENC_ISA::Sums;
  static constexpr int kMostRows = kMostSums / 2;
  static constexpr int64_t kColumns = 64;
  static constexpr bool kOneSpan = !kByBlock;
  const LinearRequest& request;

  POSENC_INLINE int64_t row_elements() const { return row_bytes(request.inner); }
  POSENC_INLINE int64_t spans() const {
    return kByBlock ? scales(request.inner, request.scale_block) : 1;
  }
  POSENC_INLINE int64_t span_elements() const { return request.scale_block; }
  // Of the scale of columns n and following.
  POSENC_INLINE int64_t at(int64_t n, int64_t span) const {
    return kByBlock ? n / kBlock * kBlock * spans() + span * kBlock + n % kBlock : n;
  }
  POSENC_INLINE auto first_sums(int64_t row, int64_t span) const {
    const Words minus_zero =
        static_cast<uint32_t>(request.x_minus_zeros[row * spans() + span]) + Words{};
    return [ =, this ](int64_t n) __attribute__((always_inline)) {
      const Words sums = load<Words>(request.weight_sums + at(n, span));
      return sums_from(reinterpret_cast<Ints>(minus_zero * sums));
    };
  }
  static POSENC_INLINE Weights weights(const int8_t* from) { return load_weights(from); }
  static POSENC_INLINE Bytes4 step(const uint8_t* from) { return load_bytes4(from); }
  static POSENC_INLINE void add(Sums& sums, const Weights& w, const Bytes4& x) {
    POSENC_ISA::add(sums, w, x);
  }
  POSENC_INLINE auto results(int64_t row, int64_t span) const {
    const Floats unit = request.x_units[row * spans() + span] - Floats{};
    return [ =, this ](int64_t n, const Sums& sums) __attribute__((always_inline)) {
      const Floats of_weight = load<Floats>(request.weight_units + at(n, span));
      return __builtin_convertvector(total(sums), Floats) * of_weight * unit;
    };
  }
  static POSENC_INLINE Floats plus(Floats y, Floats more) { return y + more; }
};

void linear(const LinearRequest& p, int64_t begin, int64_t end) {
  if (p.scale_block == 0) {
    multiply_packed(ProductInt8<false>{p}, begin * kBlock, end * kBlock);
  } else {
    multiply_packed(ProductInt8<true>{p}, begin * kBlock, end * kBlock);
  }
}

}  // namespace

const LinearKernels linear_int8_kernels = {linear};

}  // namespace posenc::kernels::int8::POSENC_ISA
