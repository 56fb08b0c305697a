// Attention of all queries of a sequence over its keys, with queries, keys, weights and values
// rounded to bfloat16 and all else in float32. A block of a head's queries forms a panel
// (panels.h), of pairs of neighbouring columns, and so do their scores, key by key. Weights become
// pairs of neighbouring keys, by which rows of such pairs of values are multiplied. Compiled once
// per instruction set.
//
// The reference path is attention_sequence.cpp; bfloat16.h has the arithmetic of the products.
#include "kernels/bfloat16.h"
#include "kernels/isa/attention_block.h"
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/pairs.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::bfloat16::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;
using namespace posenc::kernels::inference::POSENC_ISA;
using inference::SequenceAttentionRequest;

// One head of one sequence: keys (keys, row_elements(width)), and values (keys / 2, padded(width),
// 2), where the other of an odd last one is zero; and memory for a block.
struct Item {
  int64_t width, columns;  // row_elements(width), padded(width)
  BFloat16* keys;
  float *values, *panel, *scores;
};

// Keys per tile of scores: their sums fit in the registers.
constexpr int kKeys = kPairSums / kMostVectors;

// scores[j * width + i] = scale * query i . key j, for kCount keys.
template <int kVectors, int kCount>
POSENC_INLINE void score_tile(const float* panel, const BFloat16* keys, int64_t width, float scale,
                              float* scores, Largest<kVectors>& largest) {
  constexpr int kWidth = kVectors * kFloats;
  Floats sums[kCount][kVectors] = {};
#pragma GCC unroll 2
  for (int64_t k = 0; k < width; k += kPair) {
    Pairs x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = load_pairs(panel + k / kPair * kWidth + v * kFloats);
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) {
      const Pairs key = broadcast_pair(keys + j * width + k);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) add_pairs(sums[j][v], x[v], key);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kCount; ++j)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      store(scores + j * kWidth + v * kFloats, largest.add(v, sums[j][v] * broadcast(scale)));
}

// out (rows, columns) = factors[i] * sum over the steps of the pairs of weight i and of value c, of
// weights (steps, weight_stride) and values (steps, value_stride).
struct Mix {
  const float* weights;
  int64_t weight_stride;
  const float* values;
  int64_t value_stride, steps, columns;
  const float* factors;
  float* out;
  int64_t out_stride;

  Mix skip(int64_t rows) const {
    Mix rest = *this;
    rest.weights += rows;
    rest.factors += rows;
    rest.out += rows * out_stride;
    return rest;
  }
};

// Columns n .. n + kVectors * kFloats - 1 of kRows rows.
template <int kRows, int kVectors>
POSENC_INLINE void mix_tile(const Mix& p, int64_t n) {
  const float *weight = p.weights, *value = p.values + n;
  Floats sums[kRows][kVectors] = {};
  for (int64_t j = 0; j < p.steps; ++j, weight += p.weight_stride, value += p.value_stride) {
    Pairs w[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) w[v] = load_pairs(value + v * kFloats);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Pairs x = broadcast_pair(weight + r);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) add_pairs(sums[r][v], w[v], x);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = n + v * kFloats;
      float* const out = p.out + r * p.out_stride + at;
      const Floats y = sums[r][v] * broadcast(p.factors[r]);
      if (p.columns - at >= kFloats) {
        store(out, y);
      } else {
        for (int64_t i = 0; i < p.columns - at; ++i) out[i] = y[i];
      }
    }
  }
}

// `rows` rows, at most kRows.
constexpr int kMixRows = kPairSums / 2;
template <int kRows = kMixRows>
void mix_rows(const Mix& p, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return mix_rows<kRows - 1>(p, rows);
  }
  int64_t n = 0;
  for (; n + kFloats < p.columns; n += 2 * kFloats) mix_tile<kRows, 2>(p, n);
  if (n < p.columns) mix_tile<kRows, 1>(p, n);
}

template <int kVectors>
void attend(const SequenceAttentionRequest& p, const Block& block, const Item& item) {
  constexpr int kWidth = kVectors * kFloats;
  round_rows(block.query, p.query_stride, p.width, block.rows,
             reinterpret_cast<BFloat16*>(item.scores));
  pack(item.scores, item.width / kPair, block.rows, item.width / kPair, kWidth, item.panel);
  const BFloat16* const keys = item.keys + block.first_key * item.width;
  Largest<kVectors> largest;
  int64_t j = 0;
  for (; j + kKeys <= block.count; j += kKeys)
    score_tile<kVectors, kKeys>(item.panel, keys + j * item.width, item.width, p.scale,
                                item.scores + j * kWidth, largest);
  for (; j < block.count; ++j)
    score_tile<kVectors, 1>(item.panel, keys + j * item.width, item.width, p.scale,
                            item.scores + j * kWidth, largest);
  Floats factors[kVectors];
  finish_all<kVectors>(p, block, item.scores, largest);
  weigh<kPair>(block, item.scores, largest.most, factors,
               [&](int64_t j, int v, const Floats(&weights)[kPair]) {
                 store(item.scores + j / kPair * kWidth + v * kFloats,
                       rounded_pairs(weights[0], weights[1]));
               });
  float factor_of[kWidth];
  for (int v = 0; v < kVectors; ++v) store(factor_of + v * kFloats, factors[v]);
  const Mix all = {item.scores,
                   kWidth,
                   item.values + block.first_key / kPair * item.columns,
                   item.columns,
                   (block.count + 1) / kPair,
                   p.width,
                   factor_of,
                   block.out,
                   p.out_stride};
  const int64_t tiles = (block.rows + kMixRows - 1) / kMixRows;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = block.rows * i / tiles;
    mix_rows(all.skip(first), block.rows * (i + 1) / tiles - first);
  }
}

// Rows of values to pairs of neighbours.
void pair_values(const float* values, int64_t stride, int64_t keys, int64_t width, int64_t columns,
                 float* to) {
  for (int64_t j = 0; j < keys; j += kPair, to += columns) {
    const float *const even = values + j * stride, *const odd = even + stride;
    by_sixteen(width, [&](int64_t i, int64_t n) {
      const Wide a = read(even + i, n), b = j + 1 < keys ? read(odd + i, n) : Wide{};
      for (int part = 0; part < kParts; ++part)
        store(to + i + part * kFloats, rounded_pairs(a.part[part], b.part[part]));
    });
  }
}

void attend_item(const SequenceAttentionRequest& p, int64_t head, int64_t sequence,
                 float* scratch) {
  const int64_t keys = p.key_lengths[sequence], pairs = (keys + 1) / kPair;
  const int64_t at = p.key_first[sequence] * p.key_stride + head / p.group * p.width;
  const auto take = [&](int64_t floats) {
    float* const taken = scratch;
    scratch += floats;
    return taken;
  };
  Item item = {row_elements(p.width), padded(p.width), nullptr, nullptr, nullptr, nullptr};
  // Values first: their registers are whole lines.
  item.values = take(pairs * item.columns);
  item.panel = take(inference::kPanelRows * item.width / kPair);
  item.scores = take(score_floats(p.width, keys));
  item.keys = reinterpret_cast<BFloat16*>(take(keys * item.width / kPair));
  round_rows(p.keys + at, p.key_stride, p.width, keys, item.keys);
  pair_values(p.values + at, p.key_stride, keys, p.width, item.columns, item.values);
  each_block(p, head, sequence, [&](const Block& block) {
    with_vectors(block.rows, [&]<int kVectors> { attend<kVectors>(p, block, item); });
  });
}

__attribute__((noinline)) void attend_items(const SequenceAttentionRequest& p, int64_t begin,
                                            int64_t end, float* scratch) {
  each_item(p, begin, end,
            [&](int64_t head, int64_t sequence) { attend_item(p, head, sequence, scratch); });
}

void attend_sequences(const SequenceAttentionRequest& p, int64_t begin, int64_t end,
                      float* scratch) {
  const Flushing flushing;
  attend_items(p, begin, end, scratch);
}

}  // namespace

const inference::SequenceAttentionKernels attention_bfloat16_kernels = {attend_sequences};

}  // namespace posenc::kernels::bfloat16::POSENC_ISA
