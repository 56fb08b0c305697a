// Attention of all queries of a sequence over its keys. A block of a head's queries forms a panel
// (panels.h), and so do their scores, key by key: each operation on scores is done for all queries
// of the block at once, so that nothing is summed across a register, and nothing is transposed
// before the result. Compiled once per instruction set.
//
// The reference path is at::scaled_dot_product_attention; each sum is one chain, in key order.
#include "kernels/inference.h"
#include "kernels/isa/attention_window.h"
#include "kernels/isa/exponential.h"
#include "kernels/isa/panels.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// The fewest keys, and panels of queries that read them, for which a copy of the keys pays off.
constexpr int64_t kManyKeys = 768, kManyPanels = 8;

// Queries first .. first + rows - 1 of one sequence and head, and the keys that any of them sees:
// `count` from first_key on, whose key, value and bias the pointers are at.
struct Block {
  const float *query, *keys, *values, *bias, *mask;
  const float* relative;     // this head's entry of distance 0, or null
  const int64_t* positions;  // of the sequence's rows, or null: their numbers
  int64_t stride;            // of keys and values
  int64_t first, rows, first_key, count;
  const Window* window;  // null: none
  float* out;
};

// Adds the relative bias of the block's key j, which for neighbouring queries is in neighbouring
// entries, unless rows are missing between them.
template <int kVectors>
POSENC_INLINE void add_relative(const Block& block, int64_t j, float* scores) {
  const int64_t key = block.first_key + j;
  if (block.positions == nullptr) {
    const float* const bias = block.relative + block.first - key;
    for (int v = 0; v < kVectors; ++v) {
      float* const at = scores + v * kFloats;
      store(at, load<Floats>(at) + load<Floats>(bias + v * kFloats));
    }
    return;
  }
  const int64_t position = block.positions[key];
  for (int64_t i = 0; i < block.rows; ++i)
    scores[i] += block.relative[block.positions[block.first + i] - position];
}

// Turns the dot products with the block's key j into final scores: scale, biases, causal mask,
// window.
template <int kVectors>
POSENC_INLINE void finish(const SequenceAttentionRequest& p, const Block& block, int64_t j,
                          float* scores) {
  for (int v = 0; v < kVectors; ++v) {
    float* const at = scores + v * kFloats;
    store(at, load<Floats>(at) * broadcast(p.scale));
  }
  if (block.relative != nullptr) add_relative<kVectors>(block, j, scores);
  if (block.bias != nullptr && p.bias_strides[2] == 1 && block.rows == kVectors * kFloats) {
    const float* const bias = block.bias + j * p.bias_strides[3];
    for (int v = 0; v < kVectors; ++v) {
      float* const at = scores + v * kFloats;
      store(at, load<Floats>(at) + load<Floats>(bias + v * kFloats));
    }
  } else if (block.bias != nullptr) {
    const float* const bias = block.bias + j * p.bias_strides[3];
    if (p.bias_strides[2] == 1) {  // neighbours, which are added many at a time
      for (int64_t i = 0; i < block.rows; ++i) scores[i] += bias[i];
    } else {
      for (int64_t i = 0; i < block.rows; ++i) scores[i] += bias[i * p.bias_strides[2]];
    }
  }
  if (block.mask != nullptr) {
    const float* const mask = block.mask + j * p.mask_stride;
    for (int64_t i = 0; i < block.rows; ++i) scores[i] += mask[i];
  }
  const int64_t key = block.first_key + j;
  if (p.is_causal) {
    for (int64_t i = 0; i < block.rows && block.first + i < key; ++i) scores[i] = -__builtin_inff();
  }
  if (block.window != nullptr) block.window->apply<kVectors>(key, scores);
}

// Replaces scores (count, width) by exp(score - the query's largest); factors: 1 / their sum, or 0
// for a query that sees no key.
template <int kVectors>
POSENC_INLINE void softmax_weights(const SequenceAttentionRequest& p, const Block& block,
                                   float* scores, Floats (&factors)[kVectors]) {
  constexpr int kWidth = kVectors * kFloats;
  const Floats nothing = broadcast(-__builtin_inff());
  Floats most[kVectors];
  for (Floats& one : most) one = nothing;
  for (int64_t j = 0; j < block.count; ++j) {
    finish<kVectors>(p, block, j, scores + j * kWidth);
    for (int v = 0; v < kVectors; ++v)
      most[v] = maximum(most[v], load<Floats>(scores + j * kWidth + v * kFloats));
  }
  Floats sums[kVectors] = {};
  for (Floats& one : most) one = one == nothing ? Floats{} : one;
  for (int64_t j = 0; j < block.count; ++j) {
    for (int v = 0; v < kVectors; ++v) {
      float* const at = scores + j * kWidth + v * kFloats;
      const Floats weight = exponential(load<Floats>(at) - most[v]);
      store(at, weight);
      sums[v] += weight;
    }
  }
  for (int v = 0; v < kVectors; ++v)
    factors[v] = sums[v] == Floats{} ? Floats{} : broadcast(1.0f) / sums[v];
}

template <int kVectors>
void attend(const SequenceAttentionRequest& p, const Block& block, float* scratch) {
  constexpr int kWidth = kVectors * kFloats;
  float* const panel = scratch;
  float* const scores = scratch + p.width * kWidth;
  pack(block.query, p.query_stride, block.rows, p.width, kWidth, panel);
  product<kVectors>(panel, ByRows{block.keys, block.stride}, p.width, block.count, scores);
  Floats factors[kVectors];
  softmax_weights<kVectors>(p, block, scores, factors);
  alignas(64) float sums[kGroup * kWidth];
  for (int64_t n = 0; n < p.width; n += kGroup) {
    const int64_t columns = p.width - n < kGroup ? p.width - n : kGroup;
    product<kVectors>(scores, ByColumns{block.values + n, block.stride}, block.count, columns,
                      sums);
    for (int64_t c = 0; c < columns; ++c)
      for (int v = 0; v < kVectors; ++v) {
        float* const at = sums + c * kWidth + v * kFloats;
        store(at, load<Floats>(at) * factors[v]);
      }
    unpack(sums, kWidth, block.rows, columns, nullptr, block.out + n, p.out_stride);
  }
}

// One head's keys and values, and the distance of their rows.
struct KeysAndValues {
  const float *keys, *values;
  int64_t stride;
};

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
  const int64_t column = head * p.width, key_column = head / p.group * p.width;
  const int64_t queries = p.query_lengths[sequence], keys = p.key_lengths[sequence];
  const int64_t first_row = p.query_first[sequence];
  const int64_t at = p.key_first[sequence] * p.key_stride + key_column;
  KeysAndValues all = {p.keys + at, p.values + at, p.key_stride};
  if (p.window == kNoWindow && keys >= kManyKeys && queries >= kManyPanels * kPanel)
    all = without_gaps(p, all, keys, scratch + kPanelRows * (p.width + keys));
  for (int64_t first = 0; first < queries; first += kPanel) {
    const int64_t rows = queries - first < kPanel ? queries - first : kPanel;
    int64_t begin = 0, end = p.is_causal && first + rows < keys ? first + rows : keys;
    Window window;
    if (p.window != kNoWindow) window = Window(p, first_row, first, rows, begin, end);
    Block block = {p.query + (first_row + first) * p.query_stride + column,
                   all.keys + begin * all.stride,
                   all.values + begin * all.stride,
                   nullptr,
                   nullptr,
                   p.relative != nullptr ? p.relative + head * p.relative_stride : nullptr,
                   p.relative_positions != nullptr ? p.relative_positions + first_row : nullptr,
                   all.stride,
                   first,
                   rows,
                   begin,
                   end - begin,
                   p.window != kNoWindow ? &window : nullptr,
                   p.out + (first_row + first) * p.out_stride + column};
    if (p.bias != nullptr)
      block.bias = p.bias + sequence * p.bias_strides[0] + head * p.bias_strides[1] +
                   first * p.bias_strides[2] + begin * p.bias_strides[3];
    if (p.masks != nullptr && p.masks[sequence] != nullptr)
      block.mask = p.masks[sequence] + first + begin * p.mask_stride;
    with_vectors(rows, [&]<int kVectors> { attend<kVectors>(p, block, scratch); });
  }
}

// Item i is head i / sequences of sequence i % sequences, so that threads get equal parts of every
// sequence; all heads of a sequence are done before the next, since its rows are then in the cache.
void attend_sequences(const SequenceAttentionRequest& p, int64_t begin, int64_t end,
                      float* scratch) {
  for (int64_t sequence = 0; sequence < p.sequences; ++sequence) {
    const int64_t after = (begin - sequence + p.sequences - 1) / p.sequences;
    for (int64_t head = after; head * p.sequences + sequence < end; ++head)
      attend_item(p, head, sequence, scratch);
  }
}

}  // namespace

const SequenceAttentionKernels attention_sequence_kernels = {attend_sequences};

}  // namespace posenc::kernels::inference::POSENC_ISA
