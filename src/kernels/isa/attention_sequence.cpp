// Attention of all queries of a sequence over its keys. A block of a head's queries forms a panel
// (panels.h), and so do their scores, key by key: each operation on scores is done for all queries
// of the block at once, so that nothing is summed across a register, and nothing is transposed
// before the result. Compiled once per instruction set.
//
// The reference path is at::scaled_dot_product_attention; each sum is one chain, in key order.
#include "kernels/isa/attention_block.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// The fewest keys, and panels of queries that read them, for which a copy of the keys pays off.
constexpr int64_t kManyKeys = 768, kManyPanels = 8;

// One head's keys and values, and the distance of their rows.
struct KeysAndValues {
  const float *keys, *values;
  int64_t stride;
};

// Replaces scores (count, width) by exp(score - the query's largest); factors: 1 / their sum.
template <int kVectors>
POSENC_INLINE void weigh(float* scores, int64_t count, const Floats (&most)[kVectors],
                         Floats (&factors)[kVectors]) {
  constexpr int kWidth = kVectors * kFloats;
  for (Floats& one : factors) one = Floats{};
  for (int64_t j = 0; j < count; ++j) {
    for (int v = 0; v < kVectors; ++v) {
      float* const at = scores + j * kWidth + v * kFloats;
      const Floats weight = exponential(load<Floats>(at) - most[v]);
      store(at, weight);
      factors[v] += weight;
    }
  }
  invert(factors);
}

template <int kVectors>
void attend(const SequenceAttentionRequest& p, const Block& block, const KeysAndValues& all,
            float* scratch) {
  constexpr int kWidth = kVectors * kFloats;
  float* const panel = scratch;
  float* const scores = scratch + p.width * kWidth;
  pack(block.query, p.query_stride, block.rows, p.width, kWidth, panel);
  Largest<kVectors> largest;
  product<kVectors>(panel, ByRows{all.keys + block.first_key * all.stride, all.stride}, p.width,
                    block.count, scores,
                    [&](int v, Floats sum) { return largest.add(v, sum * broadcast(p.scale)); });
  Floats factors[kVectors];
  finish_all<kVectors>(p, block, scores, largest);
  weigh<kVectors>(scores, block.count, largest.most, factors);
  alignas(64) float sums[kGroup * kWidth];
  const float* const values = all.values + block.first_key * all.stride;
  for (int64_t n = 0; n < p.width; n += kGroup) {
    const int64_t columns = p.width - n < kGroup ? p.width - n : kGroup;
    product<kVectors>(scores, ByColumns{values + n, all.stride}, block.count, columns, sums);
    for (int64_t c = 0; c < columns; ++c)
      for (int v = 0; v < kVectors; ++v) {
        float* const at = sums + c * kWidth + v * kFloats;
        store(at, load<Floats>(at) * factors[v]);
      }
    unpack(sums, kWidth, block.rows, columns, nullptr, block.out + n, p.out_stride);
  }
}

// Copies them to memory without gaps, where all panels of queries read them from far fewer pages.
KeysAndValues without_gaps(const SequenceAttentionRequest& p, const KeysAndValues& from,
                           int64_t count, float* to) {
  float* const values = to + count * p.width;
  const auto bytes = sizeof(float) * static_cast<size_t>(p.width);
  for (int64_t j = 0; j < count; ++j) {
    memcpy(to + j * p.width, from.keys + j * from.stride, bytes);
    memcpy(values + j * p.width, from.values + j * from.stride, bytes);
  }
  return {to, values, p.width};
}

// One head of one sequence.
void attend_item(const SequenceAttentionRequest& p, int64_t head, int64_t sequence,
                 float* scratch) {
  const int64_t queries = p.query_lengths[sequence], keys = p.key_lengths[sequence];
  const int64_t at = p.key_first[sequence] * p.key_stride + head / p.group * p.width;
  KeysAndValues all = {p.keys + at, p.values + at, p.key_stride};
  if (p.window == kNoWindow && keys >= kManyKeys && queries >= kManyPanels * kPanel)
    all = without_gaps(p, all, keys, scratch + kPanelRows * (p.width + keys));
  each_block(p, head, sequence, [&](const Block& block) {
    with_vectors(block.rows, [&]<int kVectors> { attend<kVectors>(p, block, all, scratch); });
  });
}

void attend_sequences(const SequenceAttentionRequest& p, int64_t begin, int64_t end,
                      float* scratch) {
  each_item(p, begin, end,
            [&](int64_t head, int64_t sequence) { attend_item(p, head, sequence, scratch); });
}

}  // namespace

const SequenceAttentionKernels attention_sequence_kernels = {attend_sequences};

}  // namespace posenc::kernels::inference::POSENC_ISA
