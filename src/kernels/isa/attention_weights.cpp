// Attention weights of the products of queries and keys: scale, bias, mask and softmax of a row
// while it is in the L1 cache. Compiled once per instruction set.
//
// The reference path are the operations of relative_scores() and at::softmax. Scores have their
// bits; an exponential is within 2 ulp, and the sum of a row is made in sixteen partial sums.
#include "kernels/weights.h"

#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/exponential.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

typedef uint8_t Flags __attribute__((vector_size(kFloats)));

// What one row reads.
struct Row {
  const float *products, *term, *mask;
  const bool* allowed;
};

// The lowest number where a mask is -inf: MaskedRow::Alike.
POSENC_INLINE Floats filled(Floats x, Floats mask) {
  const Ints is_hidden = mask == broadcast(-__builtin_inff());
  return floats_of(select(is_hidden, bits_of(broadcast(-__FLT_MAX__)), bits_of(x)));
}

// Scores of the keys i .. i + 15 of a row, for each way of making them.
//
// The common ways have no branch: what is not scaled is multiplied by 1, which changes no bit.
template <bool kHasTerm, bool kHasMask, bool kWithTerm, bool kFills = false>
struct Common {
  Floats of_products, of_term, of_sum;

  explicit POSENC_INLINE Common(const WeightsRequest& p)
      : of_products(broadcast(p.scales_products ? p.scale : 1.0f)),
        of_term(broadcast(p.scales_term ? p.scale : 1.0f)),
        of_sum(broadcast(p.scales_sum ? p.scale : 1.0f)) {}

  POSENC_INLINE Wide operator()(const Row& row, int64_t i) const {
    return each([&](int part) {
      const int64_t at = i + part * kFloats;
      Floats x = load<Floats>(row.products + at) * of_products;
      if constexpr (kHasTerm) {
        Floats term = load<Floats>(row.term + at) * of_term;
        if constexpr (kHasMask && kWithTerm) term += load<Floats>(row.mask + at);
        x += term;
      } else if constexpr (kHasMask && kWithTerm) {
        x += load<Floats>(row.mask + at);
      }
      x *= of_sum;
      if constexpr (kHasMask && !kWithTerm) {
        const Floats mask = load<Floats>(row.mask + at);
        x += mask;
        if constexpr (kFills) x = filled(x, mask);
      }
      return x;
    });
  }
};

// The others: quotients, masks that are added twice, keys that are not allowed, and masks that are
// added to a term and fill.
struct Any {
  const WeightsRequest& p;

  POSENC_INLINE Floats scaled(Floats x) const {
    return p.divides ? x / broadcast(p.scale) : x * broadcast(p.scale);
  }
  POSENC_INLINE Wide operator()(const Row& row, int64_t i) const {
    const bool with_term = row.mask != nullptr && p.added_mask == AddedMask::WithTerm;
    return each([&](int part) {
      const int64_t at = i + part * kFloats;
      Floats x = load<Floats>(row.products + at);
      if (p.scales_products) x = scaled(x);
      if (row.term != nullptr) {
        Floats term = load<Floats>(row.term + at);
        if (p.scales_term) term = scaled(term);
        if (with_term) term += load<Floats>(row.mask + at);
        x += term;
      } else if (with_term) {
        x += load<Floats>(row.mask + at);
      }
      if (p.scales_sum) x = scaled(x);
      if (row.mask != nullptr && !with_term) {
        const Floats mask = load<Floats>(row.mask + at);
        x += mask;
        if (p.added_mask == AddedMask::Twice) x += mask;
      }
      if (row.mask != nullptr && p.is_softmax && p.masked_row == MaskedRow::Alike)
        x = filled(x, load<Floats>(row.mask + at));
      if (row.allowed != nullptr) {
        const Words allowed = __builtin_convertvector(load<Flags>(row.allowed + at), Words);
        x = floats_of(select(allowed != 0, bits_of(x), bits_of(broadcast(p.fill))));
      }
      return x;
    });
  }
};

POSENC_INLINE Wide maximum_of(const Wide& a, const Wide& b) {
  return each([&](int part) { return maximum(a.part[part], b.part[part]); });
}
POSENC_INLINE float largest(const Wide& w) {
  float lanes[kWide];
  write(lanes, w, kWide);
  const auto larger = [](Floats4 a, Floats4 b) { return a > b ? a : b; };
  const Floats4 most = larger(larger(load<Floats4>(lanes), load<Floats4>(lanes + 4)),
                              larger(load<Floats4>(lanes + 8), load<Floats4>(lanes + 12)));
  const float a = most[0] > most[1] ? most[0] : most[1], b = most[2] > most[3] ? most[2] : most[3];
  return a > b ? a : b;
}
POSENC_INLINE Wide exponentials(const Wide& w, float most) {
  return each([&](int part) { return exponential(w.part[part] - broadcast(most)); });
}
POSENC_INLINE Wide times(const Wide& w, float factor) {
  return each([&](int part) { return w.part[part] * broadcast(factor); });
}
POSENC_INLINE Wide plus(const Wide& a, const Wide& b) {
  return each([&](int part) { return a.part[part] + b.part[part]; });
}

// The lanes first .. 15 of a vector, and `other` in those before.
POSENC_INLINE Wide from_lane(int64_t first, const Wide& w, float other) {
  static const int32_t kLanes[2 * kWide] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                            0,  0,  0,  0,  0,  -1, -1, -1, -1, -1, -1,
                                            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  return each([&](int part) {
    const Ints kept = load<Ints>(kLanes + kWide - first + part * kFloats);
    return floats_of(select(kept, bits_of(w.part[part]), bits_of(broadcast(other))));
  });
}

// 1 / sum, where `most` has become 0 if it was -inf: then no key has a weight.
POSENC_INLINE float factor_of(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }

// x[i] = f(i) for n >= 16 numbers, sixteen at a time. The last sixteen overlap those before if n is
// no multiple: they are read before these are written, since f may read x. `seen` gets each result,
// and how many of its first lanes were in others.
template <typename F, typename Seen>
POSENC_INLINE void replace(float* x, int64_t n, F f, Seen seen) {
  const int64_t last = n - kWide;
  const Wide end = f(last);
  int64_t i = 0;
  for (; i < last; i += kWide) {
    const Wide w = f(i);
    write(x + i, w, kWide);
    seen(w, int64_t{0});
  }
  write(x + last, end, kWide);
  seen(end, i - last);
}

template <typename Scores>
POSENC_INLINE void weigh_row(const WeightsRequest& p, const Scores& scores, const Row& row,
                             int64_t n, float* out) {
  const auto nothing = [](const Wide&, int64_t) {};
  const auto scores_at = [&](int64_t i) { return scores(row, i); };
  if (!p.is_softmax) return replace(out, n, scores_at, nothing);
  Wide all = each([](int) { return broadcast(-__builtin_inff()); });
  replace(out, n, scores_at, [&](const Wide& w, int64_t) { all = maximum_of(all, w); });
  float most = largest(all);
  if (most == -__builtin_inff() && p.masked_row == MaskedRow::Zeros) most = 0.0f;
  Wide sums = {};
  replace(
      out, n, [&](int64_t i) { return exponentials(load_wide(out + i), most); },
      [&](const Wide& w, int64_t first) {
        sums = plus(sums, first == 0 ? w : from_lane(first, w, 0.0f));
      });
  const float factor = factor_of(total(sums));
  replace(out, n, [&](int64_t i) { return times(load_wide(out + i), factor); }, nothing);
}

// The same for n < 16 keys: the row is copied to the end of sixteen.
template <typename Scores>
POSENC_INLINE void weigh_few(const WeightsRequest& p, const Scores& scores, const Row& row,
                             int64_t n, float* out) {
  const int64_t before = kWide - n;
  float products[kWide] = {}, term[kWide] = {}, mask[kWide] = {};
  bool allowed[kWide] = {};
  const auto bytes = sizeof(float) * static_cast<size_t>(n);
  memcpy(products + before, row.products, bytes);
  if (row.term != nullptr) memcpy(term + before, row.term, bytes);
  if (row.mask != nullptr) memcpy(mask + before, row.mask, bytes);
  if (row.allowed != nullptr) memcpy(allowed + before, row.allowed, static_cast<size_t>(n));
  const Row copy = {products, row.term != nullptr ? term : nullptr,
                    row.mask != nullptr ? mask : nullptr,
                    row.allowed != nullptr ? allowed : nullptr};
  Wide w = scores(copy, 0);
  if (p.is_softmax) {
    w = from_lane(before, w, -__builtin_inff());
    float most = largest(w);
    if (most == -__builtin_inff() && p.masked_row == MaskedRow::Zeros) most = 0.0f;
    w = from_lane(before, exponentials(w, most), 0.0f);
    w = times(w, factor_of(total(w)));
  }
  write(products, w, kWide);
  memcpy(out, products + before, bytes);
}

template <typename Scores>
void weigh_rows(const WeightsRequest& p, const Scores& scores, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const Row row = {p.products + i * p.products_stride,
                     p.term != nullptr ? p.term + i * p.term_stride : nullptr,
                     p.mask != nullptr ? p.mask + i * p.mask_stride : nullptr,
                     p.allowed != nullptr ? p.allowed + i * p.allowed_stride : nullptr};
    float* const out = p.out + i * p.out_stride;
    int64_t n = p.keys;
    if (p.first_causal != kNotCausal && p.first_causal + i + 1 < n) n = p.first_causal + i + 1;
    if (n >= kWide) {
      weigh_row(p, scores, row, n, out);
    } else if (n > 0) {
      weigh_few(p, scores, row, n, out);
    }
    for (int64_t j = n; j < p.keys; ++j) out[j] = 0.0f;
  }
}

void weigh(const WeightsRequest& request, int64_t begin, int64_t end) {
  const WeightsRequest p = request;  // of its own, which no store to the result can change
  const bool fills = p.mask != nullptr && p.is_softmax && p.masked_row == MaskedRow::Alike;
  if (p.divides || p.allowed != nullptr ||
      (p.mask != nullptr && p.added_mask == AddedMask::Twice) ||
      (fills && p.added_mask != AddedMask::AfterTerm))
    return weigh_rows(p, Any{p}, begin, end);
  if (p.mask == nullptr) {
    if (p.term == nullptr) return weigh_rows(p, Common<false, false, false>(p), begin, end);
    return weigh_rows(p, Common<true, false, false>(p), begin, end);
  }
  if (p.added_mask == AddedMask::WithTerm) {
    if (p.term == nullptr) return weigh_rows(p, Common<false, true, true>(p), begin, end);
    return weigh_rows(p, Common<true, true, true>(p), begin, end);
  }
  if (fills) {
    if (p.term == nullptr) return weigh_rows(p, Common<false, true, false, true>(p), begin, end);
    return weigh_rows(p, Common<true, true, false, true>(p), begin, end);
  }
  if (p.term == nullptr) return weigh_rows(p, Common<false, true, false>(p), begin, end);
  weigh_rows(p, Common<true, true, false>(p), begin, end);
}

}  // namespace

const WeightsKernels weights_kernels = {weigh};

}  // namespace posenc::kernels::inference::POSENC_ISA
