// Rotary embeddings: the channels of each head rotate in pairs. Compiled once per instruction set,
// with -ffp-contract=off.
//
// The reference path is the composition of functional/rotary/compose.cpp: products, their sum and
// the joining of both halves, with the same roundings, hence the same bits. This kernel needs one
// pass over memory instead of six or more. The cosines and sines of some positions are brought into
// the order of the channels first, with their signs, where all heads of q and of k find them in the
// nearest cache:
//
//   halves    y[i] = x[i] c1[i] + x[i + n] s1[i],  y[i + n] = x[i + n] c2[i] + x[i] s2[i]
//   adjacent  y[j] = x[j] c[j] + x[j ^ 1] s[j]
#include "kernels/rotary.h"

#include "kernels/isa/rotary_factors.h"
#include "kernels/isa/rotary_lines.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using namespace posenc::kernels::rotary;

// Which channels form a pair, where it is read and where it is written.
enum class Form { Halves, Adjacent, AdjacentToHalves, HalvesToAdjacent };

constexpr int64_t kAheadBytes = 2048;

template <typename K>
class Rotator {
 public:
  using T = typename K::Stored;
  using Real = typename K::Real;

  Rotator(const Rotation& request, float* scratch)
      : r_(request),
        padded_(padded_pairs(request.pairs)),
        adjacent_(request.read_adjacent && request.write_adjacent) {
    const int64_t row = (K::kHasQuick ? 8 : 4) * padded_ * static_cast<int64_t>(sizeof(Real));
    const int64_t block = kBlockFloats * (sizeof(T) == 2 ? 2 : 4);
    rows_ = block > row ? block / row : 1;
    factors_ = reinterpret_cast<Real*>(scratch);
    quick_ = factors_ + rows_ * 4 * padded_;
    table_ = quick_ + (K::kHasQuick ? rows_ * 8 * padded_ : 0);
    parts_ = table_ + 4 * padded_;
    head_ = reinterpret_cast<T*>(parts_ + 4 * padded_);
  }

  template <bool kStream>
  void run(int64_t begin, int64_t end) {
    if (adjacent_) return run<Form::Adjacent, kStream>(begin, end);
    if (r_.read_adjacent) return run<Form::AdjacentToHalves, kStream>(begin, end);
    if (r_.write_adjacent) return run<Form::HalvesToAdjacent, false>(begin, end);  // see head()
    run<Form::Halves, kStream>(begin, end);
  }

 private:
  template <Form form, bool kStream>
  void run(int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t batch = begin / r_.length, row = begin % r_.length;
      int64_t n = r_.length - row;
      if (n > end - begin) n = end - begin;
      if (n > rows_) n = rows_;
      bool quick = K::kHasQuick;
      for (int64_t i = 0; i < n; ++i) quick &= prepare(batch, row + i, i);
      for (int i = 0; i < r_.count; ++i) {
        if constexpr (K::kHasQuick) {
          if (quick) {
            block<form, true, kStream>(r_.heads[i], batch, row, n);
            continue;
          }
        }
        block<form, false, kStream>(r_.heads[i], batch, row, n);
      }
      begin += n;
    }
    if (kStream) stream_end();
  }

  // Prepares the factors of a row: vectors of c1, s1, c2 and s2 in turn, or of c and s for adjacent
  // pairs. Returns whether the quick arithmetic can be used.
  bool prepare(int64_t batch, int64_t row, int64_t slot) const {
    const Angles& a = r_.angles;
    const int64_t n = r_.pairs, entries = (n - 1) * a.step + a.second + 1;
    const int64_t at = a.ids.data != nullptr ? a.ids[batch * a.ids_batch + row] * a.row_stride
                                             : batch * a.batch_stride + row * a.row_stride;
    const Real* const cosine = converted<K>(a, a.cos, at, entries, table_);
    const Real* const sine = converted<K>(a, a.sin, at, entries, table_ + 2 * padded_);
    const Real sign = r_.negative != r_.transposed ? Real{1} : Real{-1};
    const int64_t second = a.second, into_first = r_.transposed ? second : 0;
    const int step = adjacent_ ? 2 : 1, count = adjacent_ ? 2 : 4;
    const int64_t part = 4 * padded_ / count;
    Real* const s = parts_ + part;
    Real* const c2 = adjacent_ ? parts_ + 1 : parts_ + 2 * part;
    Real* const s2 = adjacent_ ? s + 1 : s + 2 * part;
    scatter(cosine, a.step, Real{1}, n, parts_, step);
    scatter(cosine + second, a.step, Real{1}, n, c2, step);
    scatter(sine + into_first, a.step, sign, n, s, step);
    scatter(sine + second - into_first, a.step, -sign, n, s2, step);
    Real* to = factors_ + slot * 4 * padded_;
    Real* quick = quick_ + slot * 8 * padded_;
    for (int64_t i = 0; i < part; i += K::kLanes) {
      for (int j = 0; j < count; ++j, to += K::kLanes) {
        const auto v = arranged(parts_ + j * part + i, static_cast<typename K::Vector*>(nullptr));
        store_vector(to, v);
        if constexpr (K::kHasQuick) {
          store_quick(quick, v);
          quick += kQuickFloats;
        }
      }
    }
    if constexpr (K::kHasQuick) {
      if (a.is_float && !a.round) return false;
      return adjacent_ ? are_ordinary(parts_, s, 2 * n)
                       : are_ordinary(parts_, s, n) && are_ordinary(c2, s2, n);
    }
    return false;
  }

  // Goes through the rows in memory order. Runs of rows are too short for the hardware prefetcher,
  // so data kAheadBytes ahead are prefetched.
  template <Form form, bool kQuick, bool kStream>
  void block(const Heads& h, int64_t batch, int64_t row, int64_t n) const {
    constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(T));
    const bool by_head = h.count == 1 || (n > 1 && h.out_head > h.out_row);
    const int64_t outer = by_head ? h.count : n, inner = by_head ? n : h.count;
    const int64_t x_outer = by_head ? h.x_head : h.x_row, x_inner = by_head ? h.x_row : h.x_head;
    const int64_t out_outer = by_head ? h.out_head : h.out_row;
    const int64_t out_inner = by_head ? h.out_row : h.out_head;
    const int64_t next_factors = by_head ? padded_ : 0;
    const T* x = static_cast<const T*>(h.x) + batch * h.x_batch + row * h.x_row;
    T* out = static_cast<T*>(h.out) + batch * h.out_batch + row * h.out_row;
    const bool passes = (x != out || (r_.zeros & kToHeads) != 0) && r_.width > 2 * r_.pairs;
    const int64_t first = r_.first, pairs = r_.pairs, width = r_.width;
    int64_t ahead = kAheadBytes / (width * static_cast<int64_t>(sizeof(T))) + 1;
    if (ahead > inner) ahead = inner;
    for (int64_t o = 0; o < outer; ++o) {
      const T* from = x + o * x_outer;
      const T* const next = o + 1 < outer ? from + x_outer - inner * x_inner : from;
      T* to = out + o * out_outer;
      const Real* f = factors_ + (by_head ? 0 : o * 4 * padded_);
      const Real* quick = quick_ + (by_head ? 0 : o * 8 * padded_);
      for (int64_t i = 0; i < inner; ++i) {
        const T* const later = (i + ahead < inner ? from : next + i * x_inner) + ahead * x_inner;
        for (int64_t j = 0; j < width; j += kLine) __builtin_prefetch(later + j);
        if (passes) pass(from, to);
        head<form, kQuick, kStream>(from + first, to + first, pairs, f, quick);
        from += x_inner;
        to += out_inner;
        f += 4 * next_factors;
        quick += 8 * next_factors;
      }
    }
  }

  template <Form form, bool kQuick, bool kStream>
  POSENC_INLINE void head(const T* x, T* out, int64_t n, const Real* f, const Real* quick) const {
    using L = Lines<K, kQuick>;
    if constexpr (form == Form::Adjacent) {
      L::template adjacent<kStream>(x, out, 2 * n, f, quick, r_.zeros);
    } else if constexpr (form == Form::AdjacentToHalves) {
      for (int64_t i = 0; i < n; ++i) {
        head_[i] = x[2 * i];
        head_[i + n] = x[2 * i + 1];
      }
      L::template halves<kStream>(head_, out, n, f, quick, r_.zeros);
    } else if constexpr (form == Form::HalvesToAdjacent) {
      L::template halves<false>(x, head_, n, f, quick, r_.zeros);
      for (int64_t i = 0; i < n; ++i) {
        out[2 * i] = head_[i];
        out[2 * i + 1] = head_[i + n];
      }
    } else {
      L::template halves<kStream>(x, out, n, f, quick, r_.zeros);
    }
  }

  // The channels that do not rotate.
  __attribute__((noinline)) void pass(const T* x, T* out) const {
    const int64_t after = r_.first + 2 * r_.pairs;
    pass(x, out, r_.first);
    pass(x + after, out + after, r_.width - after);
  }
  void pass(const T* x, T* out, int64_t n) const {
    if ((r_.zeros & kToHeads) == 0) {
      memcpy(out, x, sizeof(T) * static_cast<size_t>(n));
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (sizeof(T) == 2)  // the bits of a half type
        out[i] = x[i] == 0x8000 ? 0 : x[i];
      else
        out[i] = x[i] + T{};
    }
  }

  const Rotation& r_;
  int64_t padded_, rows_;
  bool adjacent_;
  Real *factors_, *quick_, *table_, *parts_;
  T* head_;
};

// Whether each block of channels that is written begins at a cache line.
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

// A Kind with the element type `E` that the table is read as, never in pairs, and with or without
// the quick arithmetic.
template <typename K, typename E, bool quick = false>
struct Rotated : K {
  using Single = E;
  static constexpr bool kHasQuick = quick;
};

template <typename K>
void rotate(const Rotation& r, int64_t begin, int64_t end, float* scratch) {
  Rotator<K> rotator(r, scratch);
  if constexpr (kStreams) {
    if (r.stream && has_lines<typename K::Stored>(r)) return rotator.template run<true>(begin, end);
  }
  rotator.template run<false>(begin, end);
}

}  // namespace

const rotary::RotaryKernels rotary_kernels = {
    {rotate<Rotated<Kind<Float32, Float32, true>, Float32>>,
     rotate<Rotated<Kind<Float64, Float64, true>, Float64>>,
     rotate<Rotated<Kind<BFloat16Pairs, BFloat16Pairs, true>, BFloat16, true>>,
     rotate<Rotated<Kind<Float16, Float16, true>, Float16>>,
     rotate<Rotated<Kind<BFloat16Pairs, Float32, false>, BFloat16>>,
     rotate<Rotated<Kind<Float16, Float32, false>, Float16>>}};

}  // namespace posenc::kernels::embed::POSENC_ISA
