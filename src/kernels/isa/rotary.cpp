// Rotary embeddings: the channels of each head rotate in pairs. Compiled once per instruction set,
// with -ffp-contract=off.
//
// The reference path is the composition of functional/rotary/compose.cpp: products, their sum and
// the joining of both halves, with the same roundings, hence the same bits. What this adds is one
// pass over memory in place of six or more. The cosines and sines of some positions are brought
// into the order of the channels first, with their signs, where all heads of q and of k find them
// in the nearest cache:
//
//   halves    y[i] = x[i] c1[i] + x[i + n] s1[i],  y[i + n] = x[i + n] c2[i] + x[i] s2[i]
//   adjacent  y[j] = x[j] c[j] + x[j ^ 1] s[j]
#include "kernels/rotary.h"

#include "kernels/isa/rotary_lines.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using namespace posenc::kernels::rotary;

// A row of the table in the arithmetic's type, in `to` where it has to be converted.
template <typename K>
const typename K::Real* converted(const Angles& a, const void* table, int64_t at, int64_t entries,
                                  typename K::Real* to) {
  using T = typename K::Stored;
  using Real = typename K::Real;
  if constexpr (sizeof(T) == sizeof(float)) {
    return static_cast<const Real*>(table) + at;
  } else if constexpr (sizeof(T) == sizeof(double)) {
    if (!a.is_float) return static_cast<const Real*>(table) + at;
    for (int64_t i = 0; i < entries; ++i) to[i] = Real{static_cast<const float*>(table)[at + i]};
  } else if (a.is_float) {
    const float* const from = static_cast<const float*>(table) + at;
    for (int64_t i = 0; i < entries; i += kFloats) {
      Floats x = {};
      memcpy(&x, from + i,
             sizeof(float) * static_cast<size_t>(entries - i < kFloats ? entries - i : kFloats));
      // one NaN for all: rounding has no place for another's low bits
      x = a.round ? K::Single::round_any(x)
                  : floats_of(select(x == x, bits_of(x), Words{} + 0x7fc00000));
      store(to + i, x);
    }
  } else {
    const T* const from = static_cast<const T*>(table) + at;
    for (int64_t i = 0; i < entries; i += kFloats) {
      T padded[kFloats] = {};
      memcpy(padded, from + i,
             sizeof(T) * static_cast<size_t>(entries - i < kFloats ? entries - i : kFloats));
      store(to + i, K::Single::read(padded));
    }
  }
  return to;
}

template <int kFrom, int kTo, typename Real>
POSENC_INLINE void place(const Real* from, Real factor, int64_t n, Real* to) {
  for (int64_t i = 0; i < n; ++i) to[kTo * i] = from[kFrom * i] * factor;
}
template <typename Real>
void place(const Real* from, int64_t step, Real factor, int64_t n, Real* to, int to_step) {
  if (step == 1)
    to_step == 1 ? place<1, 1>(from, factor, n, to) : place<1, 2>(from, factor, n, to);
  else
    to_step == 1 ? place<2, 1>(from, factor, n, to) : place<2, 2>(from, factor, n, to);
}

constexpr int64_t kAhead = 4;  // heads

template <typename K>
class Rotator {
 public:
  using T = typename K::Stored;
  using Real = typename K::Real;

  Rotator(const Rotation& request, float* scratch)
      : r_(request),
        padded_(padded_pairs(request.pairs)),
        row_(row_entries(request.pairs)),
        adjacent_(request.read_adjacent && request.write_adjacent) {
    Real* const memory = reinterpret_cast<Real*>(scratch);
    const int64_t block = kBlockFloats * static_cast<int64_t>(sizeof(float)) /
                          (row_ * static_cast<int64_t>(sizeof(Real)));
    rows_ = block > 1 ? block : 1;
    factors_ = memory;
    table_ = memory + rows_ * row_;
    head_ = reinterpret_cast<T*>(table_ + row_);
  }

  template <bool kStream>
  void run(int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t batch = begin / r_.length, row = begin % r_.length;
      int64_t n = r_.length - row;
      if (n > end - begin) n = end - begin;
      if (n > rows_) n = rows_;
      for (int64_t i = 0; i < n; ++i) prepare(batch, row + i, factors_ + i * row_);
      for (int i = 0; i < r_.count; ++i) block<kStream>(r_.heads[i], batch, row, n);
      begin += n;
    }
    if (kStream) _mm_sfence();
  }

 private:
  // Where a row of factors begins: halves have c1, s1, c2, s2, adjacent pairs c and s of twice
  // that.
  Factors<K> factors_at(Real* row) const {
    const int64_t part = adjacent_ ? 2 * padded_ : padded_;
    return {row, row + part, row + (adjacent_ ? 0 : 2 * part), row + (adjacent_ ? 0 : 3 * part)};
  }

  void prepare(int64_t batch, int64_t row, Real* to) const {
    const Angles& a = r_.angles;
    const int64_t n = r_.pairs, at = batch * a.batch_stride + row * a.row_stride;
    const int64_t entries = (n - 1) * a.step + a.second + 1;
    const Real* const cosine = converted<K>(a, a.cos, at, entries, table_);
    const Real* const sine = converted<K>(a, a.sin, at, entries, table_ + 2 * padded_);
    const Real sign = r_.negative != r_.transposed ? Real{1} : Real{-1};
    const int64_t second = a.second, into_first = r_.transposed ? second : 0;
    const int step = adjacent_ ? 2 : 1;
    Real* const s = to + (adjacent_ ? 2 : 1) * padded_;
    Real* const c2 = adjacent_ ? to + 1 : to + 2 * padded_;
    Real* const s2 = adjacent_ ? s + 1 : s + 2 * padded_;
    place(cosine, a.step, Real{1}, n, to, step);
    place(cosine + second, a.step, Real{1}, n, c2, step);
    place(sine + into_first, a.step, sign, n, s, step);
    place(sine + second - into_first, a.step, -sign, n, s2, step);
    arrange(to, row_, static_cast<typename K::Vector*>(nullptr));
  }

  // In the order of memory. Runs of rows are too short for the hardware to foresee them: those that
  // come kAhead later are asked for.
  template <bool kStream>
  void block(const Heads& h, int64_t batch, int64_t row, int64_t n) const {
    const bool by_head = h.out_head > h.out_row;
    const int64_t outer = by_head ? h.count : n, inner = by_head ? n : h.count;
    const int64_t x_outer = by_head ? h.x_head : h.x_row, x_inner = by_head ? h.x_row : h.x_head;
    const int64_t out_outer = by_head ? h.out_head : h.out_row;
    const int64_t out_inner = by_head ? h.out_row : h.out_head;
    const T* const x = static_cast<const T*>(h.x) + batch * h.x_batch + row * h.x_row;
    T* const out = static_cast<T*>(h.out) + batch * h.out_batch + row * h.out_row;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const bool within = i + kAhead < inner || o + 1 == outer;
        const int64_t later = within ? i + kAhead : i + kAhead - inner;
        const T* const ahead =
            x + (within ? o : o + 1) * x_outer + (later < inner ? later : inner - 1) * x_inner;
        for (int64_t j = 0; j < r_.width; j += kLineBytes / static_cast<int64_t>(sizeof(T)))
          __builtin_prefetch(ahead + j);
        head<kStream>(x + o * x_outer + i * x_inner, out + o * out_outer + i * out_inner,
                      factors_at(factors_ + (by_head ? i : o) * row_));
      }
    }
  }

  template <bool kStream>
  POSENC_INLINE void head(const T* x, T* out, const Factors<K>& factors) const {
    const int64_t n = r_.pairs, after = r_.first + 2 * n;
    if (x != out && r_.first > 0) memcpy(out, x, sizeof(T) * static_cast<size_t>(r_.first));
    if (x != out && after < r_.width)
      memcpy(out + after, x + after, sizeof(T) * static_cast<size_t>(r_.width - after));
    x += r_.first;
    out += r_.first;
    if (adjacent_) {
      factors.template adjacent<kStream>(x, out, 2 * n);
    } else if (r_.read_adjacent) {
      for (int64_t i = 0; i < n; ++i) {
        head_[i] = x[2 * i];
        head_[i + n] = x[2 * i + 1];
      }
      factors.template halves<kStream>(head_, out, n);
    } else if (r_.write_adjacent) {
      factors.template halves<false>(x, head_, n);
      for (int64_t i = 0; i < n; ++i) {
        out[2 * i] = head_[i];
        out[2 * i + 1] = head_[i + n];
      }
    } else {
      factors.template halves<kStream>(x, out, n);
    }
  }

  const Rotation& r_;
  int64_t padded_, row_, rows_;
  bool adjacent_;
  Real *factors_, *table_;
  T* head_;
};

// Whether each line that is written starts one of memory's, too.
template <typename T>
bool has_lines(const Rotation& r) {
  constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(T));
  if (r.first % kLine != 0 || r.pairs % kLine != 0) return false;
  for (int i = 0; i < r.count; ++i) {
    const Heads& h = r.heads[i];
    if (h.x == h.out || reinterpret_cast<uintptr_t>(h.out) % kLineBytes != 0 ||
        h.out_batch % kLine != 0 || h.out_head % kLine != 0 || h.out_row % kLine != 0)
      return false;
  }
  return true;
}

// What is read one element at a time, whatever the width of the kind's vectors.
template <typename K, typename E>
struct WithSingle : K {
  using Single = E;
};

template <typename K>
void rotate(const Rotation& r, int64_t begin, int64_t end, float* scratch) {
  Rotator<K> rotator(r, scratch);
  r.stream&& has_lines<typename K::Stored>(r) ? rotator.template run<true>(begin, end)
                                              : rotator.template run<false>(begin, end);
}

}  // namespace

const rotary::RotaryKernels rotary_kernels = {
    {rotate<WithSingle<Kind<Float32, Float32, true>, Float32>>,
     rotate<WithSingle<Kind<Float64, Float64, true>, Float64>>,
     rotate<WithSingle<Kind<BFloat16Pairs, BFloat16Pairs, true>, BFloat16>>,
     rotate<WithSingle<Kind<Float16, Float16, true>, Float16>>,
     rotate<WithSingle<Kind<BFloat16Pairs, Float32, false>, BFloat16>>,
     rotate<WithSingle<Kind<Float16, Float32, false>, Float16>>}};

}  // namespace posenc::kernels::embed::POSENC_ISA
