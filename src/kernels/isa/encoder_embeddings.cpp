// posenc-budget: one kernel, and the order of its sums
// The embeddings of an encoder: rows of the tokens, of positions and of types are added,
// normalised, and some elements dropped. Compiled once per instruction set, with -ffp-contract=off.
//
// The reference path is at::embedding, mul, add, layer_norm and dropout one after another
// (functional/embed/composed.cpp): the same operations with the same roundings, hence the same
// bits, but six or more passes over memory where this makes one. Eight rows are summed, with their
// moments (moments.h), and then normalised where they are, in the L1 cache.
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/embed_kinds.h"
#include "kernels/isa/moments.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using inference::POSENC_ISA::broadcast;
using inference::POSENC_ISA::by_sixteen;
using inference::POSENC_ISA::each;
using inference::POSENC_ISA::read;
using inference::POSENC_ISA::Wide;
using inference::POSENC_ISA::write;

const float* weight_row(const EmbedRequest& q, int64_t token) {
  return static_cast<const float*>(q.weight) + q.ids[token] * q.weight_stride;
}
float* out_of(const EmbedRequest& q) { return static_cast<float*>(q.out); }

// The rows that are added to a token's own, and where their sum goes.
struct RowSum {
  const float* word;
  const float* added[kEmbeddingsTables];
  const float* ahead;  // a later token's row of the weight, which the hardware cannot predict
  float* to;
};

// Loops over more tables than this are not unrolled.
constexpr int kUnrolled = 4, kMore = -1;

template <int kTables>
int tables_of(const EmbedRequest& q) {
  return kTables == kMore ? q.tables : kTables;
}
// Which of the functions for 0 .. kUnrolled tables, and for more of them, a request takes.
int by_tables(const EmbedRequest& q) { return q.tables <= kUnrolled ? q.tables : kUnrolled + 1; }

// Elements [begin, dim) of the sum.
template <int kTables>
void sum_row(const EmbedRequest& q, const RowSum& s, int64_t begin) {
  const Floats scale = broadcast(static_cast<float>(q.scale));
  const RowSum at = s;  // a copy, which no store can change
  const int tables = tables_of<kTables>(q);
  by_sixteen(
      q.dim - begin, [&](int64_t from, int64_t n) __attribute__((always_inline)) {
        const int64_t i = begin + from;
        __builtin_prefetch(at.ahead + i);
        const Wide token = read(at.word + i, n);
        Wide x = each([&](int part) { return token.part[part] * scale; });
        for (int k = 0; k < tables; ++k) {
          const Wide row = read(at.added[k] + i, n);
          x = each([&](int part) { return x.part[part] + row.part[part]; });
        }
        write(at.to + i, x, n);
      });
}
constexpr decltype(&sum_row<0>) kSumRow[kUnrolled + 2] = {sum_row<0>, sum_row<1>, sum_row<2>,
                                                          sum_row<3>, sum_row<4>, sum_row<kMore>};

// The sum of kChunks chunks of n vectors from element `begin` on, and their moments.
template <bool kFused, int kTables, int kChunks>
void sum_chunks(const EmbedRequest& q, const RowSum& s, int64_t begin, int n, int row,
                Moments* to) {
  const Lanes scale = static_cast<float>(q.scale) - Lanes{};
  const RowSum at = s;
  const int tables = tables_of<kTables>(q);
  chunk_moments<kFused, kChunks>(
      n, row, to, [&](int c, int j) __attribute__((always_inline)) {
        const int64_t i = begin + (c * kChunk + j) * kLanes;
        if (c % 2 == 0) __builtin_prefetch(at.ahead + begin + (j * kChunks + c) * kLanes);
        Lanes x = load<Lanes>(at.word + i) * scale;
#pragma GCC unroll 4
        for (int k = 0; k < tables; ++k) x = x + load<Lanes>(at.added[k] + i);
        store(at.to + i, x);
        return x;
      });
}

// The same for a whole row, with as many chunks at a time as the registers hold.
template <bool kFused, int kTables>
void sum_and_moments(const EmbedRequest& q, const RowSum& s, int row, Moments* to) {
  constexpr int kMost = 6;
  static constexpr decltype(&sum_chunks<kFused, kTables, 1>) kMany[kMost] = {
      sum_chunks<kFused, kTables, 1>, sum_chunks<kFused, kTables, 2>,
      sum_chunks<kFused, kTables, 3>, sum_chunks<kFused, kTables, 4>,
      sum_chunks<kFused, kTables, 5>, sum_chunks<kFused, kTables, 6>};
  const int64_t vectors = q.dim / kLanes;
  int64_t whole = vectors / kChunk, begin = 0;
  for (int64_t n; whole > 0; whole -= n, to += n, begin += n * kChunk * kLanes) {
    n = whole < kMost ? whole : kMost;
    kMany[n - 1](q, s, begin, kChunk, row, to);
  }
  if (vectors % kChunk != 0) kMany[0](q, s, begin, static_cast<int>(vectors % kChunk), row, to);
  if (q.dim % kLanes != 0) sum_row<kTables>(q, s, vectors * kLanes);
}
template <bool kFused>
constexpr decltype(&sum_and_moments<kFused, 0>) kSumAndMoments[kUnrolled + 2] = {
    sum_and_moments<kFused, 0>, sum_and_moments<kFused, 1>, sum_and_moments<kFused, 2>,
    sum_and_moments<kFused, 3>, sum_and_moments<kFused, 4>, sum_and_moments<kFused, kMore>};

// The rows of a request's tables for consecutive tokens.
class Tables {
 public:
  Tables(const EmbedRequest& q, int64_t token) : q_(q) {
    for (int k = 0; k < q.tables; ++k) slot_[k] = token % q.added[k].count;
  }
  void next(const float** rows) {
    for (int k = 0; k < q_.tables; ++k) {
      const AddedRows& p = q_.added[k];
      const int64_t row = p.ids.data != nullptr ? p.ids[slot_[k]] : p.offset + slot_[k];
      rows[k] = static_cast<const float*>(p.table) + row * p.stride;
      if (++slot_[k] == p.count) slot_[k] = 0;
    }
  }

 private:
  const EmbedRequest& q_;
  int64_t slot_[kEmbeddingsTables];
};

// Normalises kRows rows from `x` on, so that each vector of the weight and the bias is loaded only
// once for all of them.
template <bool kFused, bool kBias, bool kDropout, int kRows>
void norm_some(const EmbedRequest& q, int64_t token, const float* x, const float* mean,
               const float* rstd) {
  Floats middle[kRows], spreading[kRows];
  for (int r = 0; r < kRows; ++r) {
    middle[r] = broadcast(mean[r]);
    spreading[r] = broadcast(rstd[r]);
  }
  const Floats factor = broadcast(static_cast<float>(q.kept.factor));
  float* const to = out_of(q) + token * q.dim;
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
void norm_block(const EmbedRequest& q, int64_t first, int64_t n, const float* x, const float* mean,
                const float* rstd) {
  constexpr int kTogether = 4;
  int64_t r = 0;
  for (; r + kTogether <= n; r += kTogether)
    norm_some<kFused, kBias, kDropout, kTogether>(q, first + r, x + r * q.dim, mean + r, rstd + r);
  for (; r < n; ++r)
    norm_some<kFused, kBias, kDropout, 1>(q, first + r, x + r * q.dim, mean + r, rstd + r);
}

void drop_row(const EmbedRequest& q, int64_t token) {
  const Floats factor = broadcast(static_cast<float>(q.kept.factor));
  float* const row = out_of(q) + token * q.dim;
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
void norm_rows(const EmbedRequest& q, int64_t first, int64_t n, const Moments& of_lanes,
               const float* x) {
  const bool bias = q.norm.bias != nullptr, dropout = q.kept.bits != nullptr;
  const auto norm =
      bias ? (dropout ? norm_block<kFused, true, true> : norm_block<kFused, true, false>)
           : (dropout ? norm_block<kFused, false, true> : norm_block<kFused, false, false>);
  const RowScales of = finish_rows<kFused>(x, n, of_lanes, q.dim, q.norm.eps);
  float mean[kLanes], rstd[kLanes];
  store(mean, of.mean);
  store(rstd, of.rstd);
  norm(q, first, n, x, mean, rstd);
  if (q.norm.sum == nullptr) return;
  memcpy(q.norm.mean + first, mean, sizeof(float) * static_cast<size_t>(n));
  memcpy(q.norm.rstd + first, rstd, sizeof(float) * static_cast<size_t>(n));
}

// The rows that are added for a token. `ahead` is the token that is processed next.
POSENC_INLINE RowSum row_sum(const EmbedRequest& q, Tables& tables, float* sums, int64_t token,
                             int64_t ahead) {
  RowSum s = {weight_row(q, token), {}, weight_row(q, ahead), sums + token * q.dim};
  tables.next(s.added);
  return s;
}

// The number of tokens after which a table repeats itself, if it is large; else `tokens`.
int64_t sequence_length(const EmbedRequest& q, int64_t tokens) {
  int64_t longest = 0;
  for (int k = 0; k < q.tables; ++k)
    if (q.added[k].count < tokens && q.added[k].count > longest) longest = q.added[k].count;
  return longest < 8 * kLanes ? tokens : longest;
}

// Processes the same positions of all sequences together, so that their rows are still in a near
// cache when the next sequence needs them.
template <bool kFused>
void embeddings_norm(const EmbedRequest& q, int64_t begin, int64_t end) {
  const MergePlan plan(q.dim);
  float* const sums = q.norm.sum != nullptr ? q.norm.sum : out_of(q);
  Moments chunks[MergePlan::kMostChunks + 1];
  const auto group = [&](int64_t first, int64_t last, int64_t next) {
    Tables tables(q, first);
    for (int64_t t = first; t < last; ++t)
      kSumAndMoments<kFused>[by_tables(q)](q,
                                           row_sum(q, tables, sums, t, t + 1 < last ? t + 1 : next),
                                           static_cast<int>(t - first), chunks);
    plan.run<kFused>(chunks, last - first);
    norm_rows<kFused>(q, first, last - first, chunks[0], sums + first * q.dim);
  };
  const int64_t length = sequence_length(q, end - begin);
  const int64_t origin = length < end - begin ? begin / length * length : begin;
  for (int64_t at = 0; at < length; at += kLanes) {
    const int64_t most = length - at < kLanes ? length - at : kLanes;
    for (int64_t start = origin + at; start < end; start += length) {
      const int64_t first = start < begin ? begin : start;
      const int64_t last = start + most < end ? start + most : end;
      const int64_t next = start + length < end ? start + length : last < end ? last : first;
      if (first < last) group(first, last, next);
    }
  }
}

template <bool kFused>
void embeddings(const EmbedRequest& q, int64_t begin, int64_t end) {
  if (q.norm.weight != nullptr) return embeddings_norm<kFused>(q, begin, end);
  Tables tables(q, begin);
  for (int64_t t = begin; t < end; ++t) {
    kSumRow[by_tables(q)](q, row_sum(q, tables, out_of(q), t, t + 1 < end ? t + 1 : t), 0);
    if (q.kept.bits != nullptr) drop_row(q, t);
  }
}

}  // namespace

const EmbeddingsKernels embeddings_kernels = {
    {kHasFma ? embeddings<true> : nullptr, embeddings<false>}};

}  // namespace posenc::kernels::embed::POSENC_ISA
