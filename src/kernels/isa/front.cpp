// An embedding front: rows of the tokens, of positions and of types are added, normalised, and some
// elements dropped. Compiled once per instruction set, with -ffp-contract=off.
//
// The reference path is at::embedding, mul, add, layer_norm and dropout one after another
// (functional/embedding_front/composed.cpp): the same operations with the same roundings, hence the
// same bits, but six or more passes over memory where this makes one. Eight rows at a time are
// summed, their moments finished together (moments.h), and normalised where they are, in the L1
// cache.
#include "kernels/front.h"
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/embed_kinds.h"
#include "kernels/isa/moments.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using inference::POSENC_ISA::broadcast;
using inference::POSENC_ISA::by_sixteen;
using inference::POSENC_ISA::each;
using inference::POSENC_ISA::kWide;
using inference::POSENC_ISA::read;
using inference::POSENC_ISA::Wide;
using inference::POSENC_ISA::write;

// `tables` has a row of each table. `ahead` is a later token's row of the weight, which the
// hardware cannot predict.
template <int kTables>
void sum_row(const FrontRequest& q, const float* word, const float* const* tables,
             const float* ahead, float* to) {
  const Floats scale = broadcast(q.scale);
  const float* rows[kFrontTables];  // a copy, which no store can change
  for (int k = 0; k < kTables; ++k) rows[k] = tables[k];
  by_sixteen(q.dim, [&](int64_t i, int64_t n) {
    __builtin_prefetch(ahead + i);
    const Wide token = read(word + i, n);
    Wide x = each([&](int part) { return token.part[part] * scale; });
    for (int k = 0; k < kTables; ++k) {
      const Wide row = read(rows[k] + i, n);
      x = each([&](int part) { return x.part[part] + row.part[part]; });
    }
    write(to + i, x, n);
  });
}

constexpr decltype(&sum_row<0>) kSumRow[kFrontTables + 1] = {sum_row<0>, sum_row<1>, sum_row<2>,
                                                             sum_row<3>, sum_row<4>};

// The rows of a request's tables for consecutive tokens.
class Tables {
 public:
  Tables(const FrontRequest& q, int64_t token) : q_(q) {
    for (int k = 0; k < q.tables; ++k) slot_[k] = token % q.added[k].count;
  }
  void next(const float** rows) {
    for (int k = 0; k < q_.tables; ++k) {
      const Positions& p = q_.added[k];
      const int64_t row = p.ids.data != nullptr ? p.ids[slot_[k]] : p.offset + slot_[k];
      rows[k] = static_cast<const float*>(p.table) + row * p.stride;
      if (++slot_[k] == p.count) slot_[k] = 0;
    }
  }

 private:
  const FrontRequest& q_;
  int64_t slot_[kFrontTables];
};

template <bool kFused>
POSENC_INLINE Floats scaled_and_shifted(Floats x, Floats weight, Floats bias) {
#if defined(__AVX2__)
  if constexpr (kFused) return inference::POSENC_ISA::fma(x, weight, bias);
#endif
  return x * weight + bias;
}

// kRows rows from `x` on, which need each vector of the weight and of the bias only once.
template <bool kFused, bool kBias, bool kDropout, int kRows>
void norm_some(const FrontRequest& q, int64_t token, const float* x, const float* mean,
               const float* rstd) {
  Floats middle[kRows], spreading[kRows];
  for (int r = 0; r < kRows; ++r) {
    middle[r] = broadcast(mean[r]);
    spreading[r] = broadcast(rstd[r]);
  }
  const Floats factor = broadcast(static_cast<float>(q.kept.factor));
  float* const to = q.out + token * q.dim;
  by_sixteen(q.dim, [&](int64_t i, int64_t n) {
    const Wide weight = read(q.norm.weight + i, n);
    const Wide bias = kBias ? read(q.norm.bias + i, n) : Wide{};
    for (int r = 0; r < kRows; ++r) {
      const Wide value = read(x + r * q.dim + i, n);
      const uint64_t kept = kDropout ? bits_from(q.kept.bits, (token + r) * q.dim + i) : 0;
      const Wide y = each([&](int part) {
        const Floats normal = (value.part[part] - middle[r]) * spreading[r];
        const Floats one = scaled_and_shifted<kFused>(normal, weight.part[part], bias.part[part]);
        return kDropout ? one * spread(kept >> (part * kFloats), factor) : one;
      });
      write(to + r * q.dim + i, y, n);
    }
  });
}

template <bool kFused, bool kBias, bool kDropout>
void norm_block(const FrontRequest& q, int64_t first, int64_t n, const float* x, const float* mean,
                const float* rstd) {
  constexpr int kTogether = 4;
  int64_t r = 0;
  for (; r + kTogether <= n; r += kTogether)
    norm_some<kFused, kBias, kDropout, kTogether>(q, first + r, x + r * q.dim, mean + r, rstd + r);
  for (; r < n; ++r)
    norm_some<kFused, kBias, kDropout, 1>(q, first + r, x + r * q.dim, mean + r, rstd + r);
}

void drop_row(const FrontRequest& q, int64_t token) {
  const Floats factor = broadcast(static_cast<float>(q.kept.factor));
  float* const row = q.out + token * q.dim;
  by_sixteen(q.dim, [&](int64_t i, int64_t n) {
    const Wide x = read(row + i, n);
    const uint64_t kept = bits_from(q.kept.bits, token * q.dim + i);
    write(row + i,
          each([&](int part) { return x.part[part] * spread(kept >> (part * kFloats), factor); }),
          n);
  });
}

template <bool kFused>
void norm_rows(const FrontRequest& q, const MergePlan& plan, int64_t first, int64_t n) {
  const bool bias = q.norm.bias != nullptr, dropout = q.kept.bits != nullptr;
  const auto norm =
      bias ? (dropout ? norm_block<kFused, true, true> : norm_block<kFused, true, false>)
           : (dropout ? norm_block<kFused, false, true> : norm_block<kFused, false, false>);
  const float* const sums = q.norm.sum != nullptr ? q.norm.sum : q.out;
  const float* rows[kLanes];
  Moments chunks[kLanes * MergePlan::kMostChunks], lanes[kLanes] = {};
  for (int r = 0; r < kLanes; ++r) {
    rows[r] = sums + (first + (r < n ? r : 0)) * q.dim;
    if (r < n) row_chunks<kFused>(rows[r], plan.vectors(), chunks + r * plan.chunks());
  }
  plan.run<kFused>(chunks, n, lanes);
  const RowScales of = finish_rows<kFused>(rows, lanes, q.dim, q.norm.eps);
  float mean[kLanes], rstd[kLanes];
  store(mean, of.mean);
  store(rstd, of.rstd);
  norm(q, first, n, rows[0], mean, rstd);
  if (q.norm.sum == nullptr) return;
  memcpy(q.norm.mean + first, mean, sizeof(float) * static_cast<size_t>(n));
  memcpy(q.norm.rstd + first, rstd, sizeof(float) * static_cast<size_t>(n));
}

template <bool kFused>
void front(const FrontRequest& q, int64_t begin, int64_t end) {
  const bool normalises = q.norm.weight != nullptr;
  const MergePlan plan(normalises ? q.dim : 0);
  float* const sums = q.norm.sum != nullptr ? q.norm.sum : q.out;
  Tables tables(q, begin);
  for (int64_t first = begin; first < end; first += kLanes) {
    const int64_t n = end - first < kLanes ? end - first : kLanes;
    for (int64_t t = first; t < first + n; ++t) {
      const float* rows[kFrontTables];
      tables.next(rows);
      const float* const ahead = q.weight + q.ids[t + 2 < end ? t + 2 : t] * q.weight_stride;
      kSumRow[q.tables](q, q.weight + q.ids[t] * q.weight_stride, rows, ahead, sums + t * q.dim);
    }
    if (normalises) {
      norm_rows<kFused>(q, plan, first, n);
    } else if (q.kept.bits != nullptr) {
      for (int64_t t = first; t < first + n; ++t) drop_row(q, t);
    }
  }
}

}  // namespace

#if defined(__AVX2__)
const FrontKernels front_kernels = {{front<true>, front<false>}};
#else
const FrontKernels front_kernels = {{nullptr, front<false>}};
#endif

}  // namespace posenc::kernels::embed::POSENC_ISA
