// An embedding front: rows of the tokens, of positions and of types are added, normalised, and some
// elements dropped. Compiled once per instruction set, with -ffp-contract=off.
//
// The reference path is at::embedding, mul, add, layer_norm and dropout one after another
// (functional/embedding_front/composed.cpp): the same operations with the same roundings, hence the
// same bits, but six or more passes over memory where this makes one. Eight rows at a time are
// summed and their moments taken on the way (moments.h), which are finished together; then the rows
// are normalised where they are, in the L1 cache.
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

// The rows that are added to a token's own, and where their sum goes.
struct RowSum {
  const float* word;
  const float* added[kFrontTables];
  const float* ahead;  // a later token's row of the weight, which the hardware cannot predict
  float* to;
};

// Elements [begin, dim) of the sum.
template <int kTables>
void sum_row(const FrontRequest& q, const RowSum& s, int64_t begin) {
  const Floats scale = broadcast(q.scale);
  const RowSum at = s;  // a copy, which no store can change
  by_sixteen(
      q.dim - begin, [&](int64_t from, int64_t n) __attribute__((always_inline)) {
        const int64_t i = begin + from;
        __builtin_prefetch(at.ahead + i);
        const Wide token = read(at.word + i, n);
        Wide x = each([&](int part) { return token.part[part] * scale; });
        for (int k = 0; k < kTables; ++k) {
          const Wide row = read(at.added[k] + i, n);
          x = each([&](int part) { return x.part[part] + row.part[part]; });
        }
        write(at.to + i, x, n);
      });
}
constexpr decltype(&sum_row<0>) kSumRow[kFrontTables + 1] = {sum_row<0>, sum_row<1>, sum_row<2>,
                                                             sum_row<3>, sum_row<4>};

// The sum of kChunks chunks of n vectors from element `begin` on, and their moments. Lines of the
// row that is read ahead come in their order.
template <bool kFused, int kTables, int kChunks>
void sum_chunks(const FrontRequest& q, const RowSum& s, int64_t begin, int n, int row,
                Moments* to) {
  const Lanes scale = q.scale - Lanes{};
  const RowSum at = s;
  chunk_moments<kFused, kChunks>(
      n, row, to, [&](int c, int j) __attribute__((always_inline)) {
        const int64_t i = begin + (c * kChunk + j) * kLanes;
        if (c % 2 == 0) __builtin_prefetch(at.ahead + begin + (j * kChunks + c) * kLanes);
        Lanes x = load<Lanes>(at.word + i) * scale;
#pragma GCC unroll 4
        for (int k = 0; k < kTables; ++k) x = x + load<Lanes>(at.added[k] + i);
        store(at.to + i, x);
        return x;
      });
}

// The same for a row, with as many chunks side by side as there are registers for.
template <bool kFused, int kTables>
void sum_and_moments(const FrontRequest& q, const RowSum& s, int row, Moments* to) {
  constexpr int kMost = 6;
  static constexpr decltype(&sum_chunks<kFused, kTables, 1>) kMany[kMost] = {
      sum_chunks<kFused, kTables, 1>, sum_chunks<kFused, kTables, 2>,
      sum_chunks<kFused, kTables, 3>, sum_chunks<kFused, kTables, 4>,
      sum_chunks<kFused, kTables, 5>, sum_chunks<kFused, kTables, 6>};
  const int64_t vectors = q.dim / kLanes;
  int64_t whole = vectors / kChunk, begin = 0;
  while (whole > 0) {
    const int64_t n = whole < kMost ? whole : kMost;
    kMany[n - 1](q, s, begin, kChunk, row, to);
    begin += n * kChunk * kLanes;
    to += n;
    whole -= n;
  }
  if (vectors % kChunk != 0) kMany[0](q, s, begin, static_cast<int>(vectors % kChunk), row, to);
  if (q.dim % kLanes != 0) sum_row<kTables>(q, s, vectors * kLanes);
}
template <bool kFused>
constexpr decltype(&sum_and_moments<kFused, 0>) kSumAndMoments[kFrontTables + 1] = {
    sum_and_moments<kFused, 0>, sum_and_moments<kFused, 1>, sum_and_moments<kFused, 2>,
    sum_and_moments<kFused, 3>, sum_and_moments<kFused, 4>};

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
  by_sixteen(
      q.dim, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const Wide weight = read(q.norm.weight + i, n);
        const Wide bias = kBias ? read(q.norm.bias + i, n) : Wide{};
        for (int r = 0; r < kRows; ++r) {
          const Wide value = read(x + r * q.dim + i, n);
          const uint64_t kept = kDropout ? bits_from(q.kept.bits, (token + r) * q.dim + i) : 0;
          const Wide y = each([&](int part) {
            const Floats normal = (value.part[part] - middle[r]) * spreading[r];
            const Floats one = madd<kFused>(normal, weight.part[part], bias.part[part]);
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
  by_sixteen(
      q.dim, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const Wide x = read(row + i, n);
        const uint64_t kept = bits_from(q.kept.bits, token * q.dim + i);
        write(row + i, each([&](int part) {
                return x.part[part] * spread(kept >> (part * kFloats), factor);
              }),
              n);
      });
}

template <bool kFused>
void norm_rows(const FrontRequest& q, int64_t first, int64_t n, const RowScales& of) {
  const bool bias = q.norm.bias != nullptr, dropout = q.kept.bits != nullptr;
  const auto norm =
      bias ? (dropout ? norm_block<kFused, true, true> : norm_block<kFused, true, false>)
           : (dropout ? norm_block<kFused, false, true> : norm_block<kFused, false, false>);
  const float* const sums = q.norm.sum != nullptr ? q.norm.sum : q.out;
  float mean[kLanes], rstd[kLanes];
  store(mean, of.mean);
  store(rstd, of.rstd);
  norm(q, first, n, sums + first * q.dim, mean, rstd);
  if (q.norm.sum == nullptr) return;
  memcpy(q.norm.mean + first, mean, sizeof(float) * static_cast<size_t>(n));
  memcpy(q.norm.rstd + first, rstd, sizeof(float) * static_cast<size_t>(n));
}

// What is added for token t, which is before `end`, as is the one that is read ahead.
POSENC_INLINE RowSum row_sum(const FrontRequest& q, Tables& tables, float* sums, int64_t t,
                             int64_t end) {
  RowSum s;
  s.word = q.weight + q.ids[t] * q.weight_stride;
  s.ahead = q.weight + q.ids[t + 1 < end ? t + 1 : t] * q.weight_stride;
  s.to = sums + t * q.dim;
  tables.next(s.added);
  return s;
}

template <bool kFused>
void front_norm(const FrontRequest& q, int64_t begin, int64_t end) {
  const MergePlan plan(q.dim);
  float* const sums = q.norm.sum != nullptr ? q.norm.sum : q.out;
  Tables tables(q, begin);
  Moments chunks[MergePlan::kMostChunks + 1];
  for (int64_t first = begin; first < end; first += kLanes) {
    const int64_t n = end - first < kLanes ? end - first : kLanes;
    for (int64_t r = 0; r < n; ++r)
      kSumAndMoments<kFused>[q.tables](q, row_sum(q, tables, sums, first + r, end),
                                       static_cast<int>(r), chunks);
    plan.run<kFused>(chunks, n);
    norm_rows<kFused>(q, first, n,
                      finish_rows<kFused>(sums + first * q.dim, n, chunks[0], q.dim, q.norm.eps));
  }
}

template <bool kFused>
void front(const FrontRequest& q, int64_t begin, int64_t end) {
  if (q.norm.weight != nullptr) return front_norm<kFused>(q, begin, end);
  Tables tables(q, begin);
  for (int64_t t = begin; t < end; ++t) {
    kSumRow[q.tables](q, row_sum(q, tables, q.out, t, end), 0);
    if (q.kept.bits != nullptr) drop_row(q, t);
  }
}

}  // namespace

#if defined(__AVX2__)
const FrontKernels front_kernels = {{front<true>, front<false>}};
#else
const FrontKernels front_kernels = {{nullptr, front<false>}};
#endif

}  // namespace posenc::kernels::embed::POSENC_ISA
