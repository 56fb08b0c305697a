// Attention of sequences: the blocks of queries and the scores of each, whatever computes the
// products. Included by the kernel sources, inside the instruction set's own namespace.
#pragma once
#include "kernels/inference.h"
#include "kernels/isa/attention_window.h"
#include "kernels/isa/exponential.h"
#include "kernels/isa/panels.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// Some queries of one sequence and head, whose own keys are first .. first + rows - 1, and the keys
// that any of them sees: `count` from first_key on, an even number, whose bias and mask the
// pointers are at.
struct Block {
  const float *query, *bias, *mask;
  const float* relative;     // this head's entry of distance 0, or null
  const int64_t* positions;  // of the sequence's rows, or null: their numbers
  int64_t first, rows, first_key, count;
  const Window* window;  // null: none
  bool has_window;       // of the request
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

// Whether products times the scale are the scores.
POSENC_INLINE bool is_plain(const SequenceAttentionRequest& p, const Block& block) {
  return p.softcap == 0.0f && block.relative == nullptr && block.bias == nullptr &&
         block.mask == nullptr && !p.is_causal && block.window == nullptr;
}

// Turns the scaled products with the block's key j into scores: softcap, biases, causal mask,
// window.
template <int kVectors>
POSENC_INLINE void finish(const SequenceAttentionRequest& p, const Block& block, int64_t j,
                          float* scores) {
  if (p.softcap != 0.0f) {
    for (int v = 0; v < kVectors; ++v) {
      float* const at = scores + v * kFloats;
      store(at, soft_capped(load<Floats>(at), p.softcap));
    }
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

// The largest score of each query so far: add() is given the scores, key by key.
template <int kVectors>
struct Largest {
  Floats most[kVectors];

  POSENC_INLINE Largest() {
    for (Floats& one : most) one = broadcast(-__builtin_inff());
  }
  POSENC_INLINE Floats add(int v, Floats score) {
    most[v] = maximum(most[v], score);
    return score;
  }
};

// The scores of a block, which are the scaled products at first, which `largest` has been given;
// 0 becomes the largest of a query that sees no key.
template <int kVectors>
POSENC_INLINE void finish_all(const SequenceAttentionRequest& p, const Block& block, float* scores,
                              Largest<kVectors>& largest) {
  constexpr int kWidth = kVectors * kFloats;
  if (!is_plain(p, block)) {
    largest = Largest<kVectors>();
    for (int64_t j = 0; j < block.count; ++j) {
      float* const at = scores + j * kWidth;
      finish<kVectors>(p, block, j, at);
      for (int v = 0; v < kVectors; ++v) largest.add(v, load<Floats>(at + v * kFloats));
    }
  }
  for (Floats& one : largest.most) one = one == broadcast(-__builtin_inff()) ? Floats{} : one;
}

// Weights, and their products with values, are added up for that many keys of a sequence at a time,
// and these sums then one after the other: a chain over all keys would round each of thousands of
// nearly equal terms, those of silence say, in the same direction.
constexpr int64_t kSummedKeys = 128;

// Calls f(begin, end) for the keys of a block that are added up together: in layers with a window
// all, as the keys may be the last ones of a sequence, whose numbers are not known. Without one a
// block's keys begin with the first.
template <typename F>
POSENC_INLINE void by_summed_keys(const Block& block, F f) {
  if (block.has_window) return f(0, block.count);
  int64_t begin = 0;
  do {  // once where there is no key, too
    const int64_t end = begin + kSummedKeys;
    f(begin, end < block.count ? end : block.count);
    begin = end;
  } while (begin < block.count);
}

// 1 / sums of weights, or 0 for a query that sees no key.
template <int kVectors>
POSENC_INLINE void invert(Floats (&sums)[kVectors]) {
  for (Floats& sum : sums) sum = sum == Floats{} ? Floats{} : broadcast(1.0f) / sum;
}

// The weights exp(score - the query's largest) of the block's keys; factors: 1 / their sums. They
// are given to keep(j, v, weights) in order: register v of those of kKeys keys from j on, of which
// those after the last are zero. It may write them over scores of these keys and of those before.
template <int kKeys, int kVectors, typename Keep>
POSENC_INLINE void weigh(const Block& block, const float* scores, const Floats (&most)[kVectors],
                         Floats (&factors)[kVectors], Keep keep) {
  constexpr int kWidth = kVectors * kFloats;
  for (Floats& one : factors) one = Floats{};
  by_summed_keys(
      block, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
        Floats sums[kVectors] = {};
        for (int64_t j = begin; j < end; j += kKeys) {
          for (int v = 0; v < kVectors; ++v) {
            Floats weights[kKeys] = {};
#pragma GCC unroll 2
            for (int i = 0; i < kKeys; ++i) {
              if (i > 0 && j + i >= end) break;
              weights[i] =
                  exponential(load<Floats>(scores + (j + i) * kWidth + v * kFloats) - most[v]);
              sums[v] += weights[i];
            }
            keep(j, v, weights);
          }
        }
        for (int v = 0; v < kVectors; ++v) factors[v] += sums[v];
      });
  invert(factors);
}

// Calls f for the blocks of one head of one sequence.
template <typename F>
POSENC_INLINE void each_block(const SequenceAttentionRequest& p, int64_t head, int64_t sequence,
                              F f) {
  const int64_t column = head * p.width;
  const int64_t queries = p.query_lengths[sequence], keys = p.key_lengths[sequence];
  const int64_t first_row = p.query_first[sequence];
  const int64_t before = p.query_places != nullptr ? p.query_places[sequence] : 0;
  for (int64_t first = 0; first < queries; first += kPanel) {
    const int64_t rows = queries - first < kPanel ? queries - first : kPanel;
    const int64_t place = before + first;
    int64_t begin = 0, end = p.is_causal && place + rows < keys ? place + rows : keys;
    Window window;
    if (p.window != kNoWindow) window = Window(p, first_row, place, rows, begin, end);
    begin = begin / 2 * 2;
    Block block = {p.query + (first_row + first) * p.query_stride + column,
                   nullptr,
                   nullptr,
                   p.relative != nullptr ? p.relative + head * p.relative_stride : nullptr,
                   p.relative_positions != nullptr ? p.relative_positions + first_row : nullptr,
                   place,
                   rows,
                   begin,
                   end - begin,
                   p.window != kNoWindow ? &window : nullptr,
                   p.has_window || p.window != kNoWindow,
                   p.out + (first_row + first) * p.out_stride + column};
    if (p.bias != nullptr)
      block.bias = p.bias + sequence * p.bias_strides[0] + head * p.bias_strides[1] +
                   first * p.bias_strides[2] + begin * p.bias_strides[3];
    if (p.masks != nullptr && p.masks[sequence] != nullptr)
      block.mask = p.masks[sequence] + first + begin * p.mask_stride;
    f(block);
  }
}

// Calls f(head, sequence) for items begin .. end - 1. Item i is head i / sequences of sequence
// i % sequences, so that threads get equal parts of every sequence; all heads of a sequence are
// done before the next, since its rows are then in the cache.
template <typename F>
POSENC_INLINE void each_item(const SequenceAttentionRequest& p, int64_t begin, int64_t end, F f) {
  for (int64_t sequence = 0; sequence < p.sequences; ++sequence) {
    const int64_t after = (begin - sequence + p.sequences - 1) / p.sequences;
    for (int64_t head = after; head * p.sequences + sequence < end; ++head) f(head, sequence);
  }
}

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
