// Attention of one head of one sequence whose values are float32, whatever computes the products of
// queries and keys; and those products in float32. Included by the kernel sources, inside the
// instruction set's own namespace.
#pragma once
#include "kernels/isa/attention_block.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// The fewest keys, and panels of queries that read them, for which a copy of the keys pays off.
constexpr int64_t kManyKeys = 768, kManyPanels = 8;

// Keys or values of one head, and the distance of their rows.
struct Rows {
  const float* from;
  int64_t stride;

  POSENC_INLINE const float* at(int64_t j) const { return from + j * stride; }
};

// Whether a copy of the rows of a sequence's keys in memory without gaps, where all panels of
// queries read them from far fewer pages, pays off.
POSENC_INLINE bool is_read_often(const SequenceAttentionRequest& p, int64_t sequence) {
  return p.window == kNoWindow && p.key_lengths[sequence] >= kManyKeys &&
         p.query_lengths[sequence] >= kManyPanels * kPanel;
}
POSENC_INLINE Rows without_gaps(const Rows& rows, int64_t count, int64_t width, float* to) {
  for (int64_t j = 0; j < count; ++j)
    memcpy(to + j * width, rows.at(j), sizeof(float) * static_cast<size_t>(width));
  return {to, width};
}

// sums[c * width + i] = the products of query i's weights with column n + c of the values.
template <int kVectors>
POSENC_INLINE void sum_values(const float* weights, const Block& block, const Rows& values,
                              int64_t n, int64_t columns, float* sums) {
  constexpr int kWidth = kVectors * kFloats;
  alignas(64) float more[kGroup * kWidth];
  by_summed_keys(block, [&](int64_t begin, int64_t end) {
    product<kVectors>(weights + begin * kWidth,
                      ByColumns{values.at(block.first_key + begin) + n, values.stride}, end - begin,
                      columns, begin == 0 ? sums : more);
    if (begin == 0) return;
    for (int64_t i = 0; i < columns * kWidth; i += kFloats)
      store(sums + i, load<Floats>(sums + i) + load<Floats>(more + i));
  });
}

// The result of a block whose scores are the scaled products at first, which `largest` has been
// given.
template <int kVectors>
POSENC_INLINE void mix(const SequenceAttentionRequest& p, const Block& block, float* scores,
                       Largest<kVectors>& largest, const Rows& values) {
  constexpr int kWidth = kVectors * kFloats;
  Floats factors[kVectors];
  finish_all<kVectors>(p, block, scores, largest);
  weigh<1>(block, scores, largest.most, factors, [&](int64_t j, int v, const Floats(&weights)[1]) {
    store(scores + j * kWidth + v * kFloats, weights[0]);
  });
  alignas(64) float sums[kGroup * kWidth];
  for (int64_t n = 0; n < p.width; n += kGroup) {
    const int64_t columns = p.width - n < kGroup ? p.width - n : kGroup;
    sum_values<kVectors>(scores, block, values, n, columns, sums);
    for (int64_t c = 0; c < columns; ++c)
      for (int v = 0; v < kVectors; ++v) {
        float* const at = sums + c * kWidth + v * kFloats;
        store(at, load<Floats>(at) * factors[v]);
      }
    unpack(sums, kWidth, block.rows, columns, nullptr, block.out + n, p.out_stride);
  }
}

template <int kVectors>
void attend(const SequenceAttentionRequest& p, const Block& block, const Rows& keys,
            const Rows& values, float* scratch) {
  constexpr int kWidth = kVectors * kFloats;
  float* const panel = scratch;
  float* const scores = scratch + p.width * kWidth;
  pack(block.query, p.query_stride, block.rows, p.width, kWidth, panel);
  Largest<kVectors> largest;
  product<kVectors>(panel, ByRows{keys.at(block.first_key), keys.stride}, p.width, block.count,
                    scores,
                    [&](int v, Floats sum) { return largest.add(v, sum * broadcast(p.scale)); });
  mix<kVectors>(p, block, scores, largest, values);
}

// One head of one sequence, all in float32. `scratch`: sequence_floats(width, keys).
void attend_item(const SequenceAttentionRequest& p, int64_t head, int64_t sequence,
                 float* scratch) {
  const int64_t count = p.key_lengths[sequence];
  const int64_t at = p.key_first[sequence] * p.key_stride + head / p.group * p.width;
  Rows keys = {p.keys + at, p.key_stride}, values = {p.values + at, p.key_stride};
  if (is_read_often(p, sequence)) {
    float* const copies = scratch + kPanelRows * (p.width + count);
    keys = without_gaps(keys, count, p.width, copies);
    values = without_gaps(values, count, p.width, copies + count * p.width);
  }
  each_block(p, head, sequence, [&](const Block& block) {
    with_vectors(block.rows,
                 [&]<int kVectors> { attend<kVectors>(p, block, keys, values, scratch); });
  });
}

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
