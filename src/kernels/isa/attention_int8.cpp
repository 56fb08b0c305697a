// Attention of all queries of a sequence over its keys, with the products of queries and keys in 8
// bits and all else in float32. A head's keys are quantised once, as rows; a block of its queries
// is a panel (panels.h) of steps of four levels, as the columns of a packed weight are, so that
// their scores are a panel too, key by key. Compiled once per instruction set.
//
// int8.h has the arithmetic; the rest is that of attention_sequence.cpp.
#include "kernels/isa/attention_values.h"
#include "kernels/isa/levels_int8.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::int8::POSENC_ISA {
namespace {

using inference::SequenceAttentionRequest;

// The keys of one head of one sequence, (keys, bytes) with their units; and memory for a block.
struct ScoreItem {
  int64_t bytes;  // row_bytes(width)
  uint8_t* keys;
  float* units;
  int8_t* panel;
  float* scores;
};

// What belongs to the columns of a panel of queries: unit * scale, and what their sums begin with.
template <int kVectors>
struct Columns {
  alignas(64) float factors[kVectors * kFloats];
  alignas(64) int32_t first_sums[kVectors * kFloats];
};

// Keys per tile of scores: their sums fit in the registers.
constexpr int kTileKeys = kMostSums > kMostVectors ? kMostSums / kMostVectors : 1;

// How far ahead rows are prefetched that are converted one after another. Those of a head are
// apart, and have left the nearer caches in a large batch.
constexpr int64_t kAheadRows = 8;
POSENC_INLINE void prefetch_row(const float* x, int64_t width) {
  for (int64_t i = 0; i < width; i += kWide) __builtin_prefetch(x + i);
}

// The levels of a block's queries; there are none in the columns after the last query.
template <int kVectors>
POSENC_INLINE void pack_queries(const SequenceAttentionRequest& p, const Block& block,
                                const ScoreItem& item, Columns<kVectors>& columns) {
  constexpr int64_t kWidth = kVectors * kFloats;
  if (block.rows < kWidth) memset(item.panel, 0, static_cast<size_t>(kWidth * item.bytes));
  for (int64_t i = 0; i < kWidth; ++i) {
    PackedRow row = {0.0f, 0};
    if (i < block.rows) {
      prefetch_row(block.query + (i + kAheadRows) * p.query_stride, p.width);
      row = pack_row(block.query + i * p.query_stride, p.width, kWidth * kStep,
                     item.panel + i * kStep);
    }
    columns.factors[i] = row.unit * p.scale;
    columns.first_sums[i] = -kOffset * row.sum;
  }
}

// The scaled products of a panel and kCount keys.
template <int kVectors, int kCount>
POSENC_INLINE void score_tile(const ScoreItem& item, const Columns<kVectors>& columns, int64_t key,
                              float* scores, Largest<kVectors>& largest) {
  constexpr int kWidth = kVectors * kFloats;
  const uint8_t* const keys = item.keys + key * item.bytes;
  Sums sums[kCount][kVectors];
#pragma GCC unroll 8
  for (int j = 0; j < kCount; ++j)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sums[j][v] = sums_from(load<Ints>(columns.first_sums + v * kFloats));
#pragma GCC unroll 2
  for (int64_t k = 0; k < item.bytes; k += kStep) {
    Weights x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      x[v] = load_weights(item.panel + k * kWidth + v * kFloats * kStep);
#pragma GCC unroll 8
    for (int j = 0; j < kCount; ++j) {
      const Bytes4 step = load_bytes4(keys + j * item.bytes + k);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) add(sums[j][v], x[v], step);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < kCount; ++j) {
    const Floats unit = broadcast(item.units[key + j]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Floats score = __builtin_convertvector(total(sums[j][v]), Floats) *
                           load<Floats>(columns.factors + v * kFloats) * unit;
      store(scores + j * kWidth + v * kFloats, largest.add(v, score));
    }
  }
}

template <int kVectors>
void attend(const SequenceAttentionRequest& p, const Block& block, const ScoreItem& item,
            const Rows& values) {
  constexpr int kWidth = kVectors * kFloats;
  Columns<kVectors> columns;
  pack_queries(p, block, item, columns);
  Largest<kVectors> largest;
  int64_t j = 0;
  for (; j + kTileKeys <= block.count; j += kTileKeys)
    score_tile<kVectors, kTileKeys>(item, columns, block.first_key + j, item.scores + j * kWidth,
                                    largest);
  for (; j < block.count; ++j)
    score_tile<kVectors, 1>(item, columns, block.first_key + j, item.scores + j * kWidth, largest);
  mix<kVectors>(p, block, item.scores, largest, values);
}

// One head of one sequence.
void attend_in_bytes(const SequenceAttentionRequest& p, int64_t head, int64_t sequence,
                     float* scratch) {
  const int64_t count = p.key_lengths[sequence], bytes = row_bytes(p.width);
  const int64_t at = p.key_first[sequence] * p.key_stride + head / p.group * p.width;
  const auto take = [&](int64_t floats) {
    float* const taken = scratch;
    scratch += floats;
    return taken;
  };
  ScoreItem item = {bytes, nullptr, nullptr, nullptr, nullptr};
  // The panel and the scores first: their registers are whole lines.
  item.panel = reinterpret_cast<int8_t*>(take(inference::kPanelRows * bytes / kStep));
  item.scores = take(inference::kPanelRows * count);
  Rows values = {p.values + at, p.key_stride};
  if (is_read_often(p, sequence))
    values = without_gaps(values, count, p.width, take(count * p.width));
  item.units = take(count);
  item.keys = reinterpret_cast<uint8_t*>(take(count * bytes / kStep));
  for (int64_t j = 0; j < count; ++j) {
    prefetch_row(p.keys + at + (j + kAheadRows) * p.key_stride, p.width);
    item.units[j] =
        quantize_row<false>(p.keys + at + j * p.key_stride, p.width, item.keys + j * bytes).unit;
  }
  each_block(p, head, sequence, [&](const Block& block) {
    with_vectors(block.rows, [&]<int kVectors> { attend<kVectors>(p, block, item, values); });
  });
}

void attend_sequences(const SequenceAttentionRequest& p, int64_t begin, int64_t end,
                      float* scratch) {
  each_item(p, begin, end, [&](int64_t head, int64_t sequence) {
    if ((p.key_tokens != nullptr ? p.key_tokens : p.key_lengths)[sequence] < kLeastScoredKeys) {
      inference::POSENC_ISA::attend_item(p, head, sequence, scratch);
    } else {
      attend_in_bytes(p, head, sequence, scratch);
    }
  });
}

}  // namespace

const inference::SequenceAttentionKernels attention_int8_kernels = {attend_sequences};

}  // namespace posenc::kernels::int8::POSENC_ISA
