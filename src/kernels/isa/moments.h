// Means and standard deviations of rows, in the bits of at::layer_norm. Included by embeddings.cpp,
// inside the instruction set's own namespace.
//
// ATen (native/cpu/moments_utils.h) runs Welford's algorithm in eight lanes, on AVX-512 as well:
//  1. over each chunk of 16 vectors, from zero;
//  2. chunks are merged in pairs, those in pairs again and so on, as a binary counter counts;
//  3. the row's last elements, fewer than eight, are added one by one, from zero;
//  4. and to these the eight lanes, one after another.
// Each step depends on the one before it, but neither chunks nor rows depend on each other: here
// up to six chunks run side by side, 2 goes through eight rows at once, and 3 and 4 have a row in
// each lane.
#pragma once
#include "kernels/embed.h"
#include "kernels/isa/ops.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

using Lanes = Floats8;
constexpr int kLanes = 8;
constexpr int kChunk = 16;  // vectors

// a * b + c, rounded once or twice.
template <bool kFused, typename Vector>
POSENC_INLINE Vector madd(Vector a, Vector b, Vector c) {
  if constexpr (kFused && kHasFma) return fma(a, b, c);
  return a * b + c;
}

// The means of some elements of eight rows, and the sums of their squared distances from these, by
// row and then by lane.
struct Moments {
  alignas(kBytes) float mean[kLanes * kLanes], squares[kLanes * kLanes];
};

// Step 1, for kChunks chunks of n vectors of one row. `value(c, j)` is vector j of chunk c.
template <bool kFused, int kChunks, typename Value>
POSENC_INLINE void chunk_moments(int n, int row, Moments* to, Value value) {
  static constexpr float kInverse[kChunk] = {
      1.0f,     1.0f / 2,  1.0f / 3,  1.0f / 4,  1.0f / 5,  1.0f / 6,  1.0f / 7,  1.0f / 8,
      1.0f / 9, 1.0f / 10, 1.0f / 11, 1.0f / 12, 1.0f / 13, 1.0f / 14, 1.0f / 15, 1.0f / 16};
  Lanes mean[kChunks], squares[kChunks];
#pragma GCC unroll 8
  for (int c = 0; c < kChunks; ++c) mean[c] = squares[c] = Lanes{};
  for (int j = 0; j < n; ++j) {
    const Lanes inverse = kInverse[j] - Lanes{};
#pragma GCC unroll 8
    for (int c = 0; c < kChunks; ++c) {
      const Lanes x = value(c, j);
      const Lanes away = x - mean[c];
      mean[c] = madd<kFused>(inverse, away, mean[c]);
      squares[c] = madd<kFused>(away, x - mean[c], squares[c]);
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < kChunks; ++c) {
    store(to[c].mean + row * kLanes, mean[c]);
    store(to[c].squares + row * kLanes, squares[c]);
  }
}

// Step 2 as a list of sums, which is the same for all rows of one width. In a binary counter each
// merge depends on the one before it, so here all pairs are merged first, then all pairs of pairs,
// and so on.
class MergePlan {
 public:
  static constexpr int kMostChunks = kEmbeddingsWidest / kLanes / kChunk;

  explicit MergePlan(int64_t width)
      : vectors_(width / kLanes), chunks_(static_cast<int>((vectors_ + kChunk - 1) / kChunk)) {
    int depth = 0;
    while ((1 << depth) < chunks_) ++depth;
    const int top = depth > 0 ? depth - 1 : 0;
    for (int level = 0; level < top; ++level) {
      for (int i = 0; i + 2 <= items(level); i += 2) {
        begin(i << level);
        add_items(level, i, i + 2);
      }
    }
    // The final digits of the counter: items without a partner, and at the top level all that
    // remain.
    const auto digit = [&](int level) { return level < top ? items(level) / 2 * 2 : 0; };
    for (int level = 1; level <= top; ++level) {
      if (digit(level) == items(level)) continue;
      begin(digit(level) << level);
      add_items(level, digit(level), items(level));
    }
    begin(0);
    add_items(0, digit(0), items(0));
    for (int level = 1; level <= top; ++level) {
      const int first = digit(level), last = items(level);
      first == last ? add(chunks_, 0) : add(first << level, vectors(level, first, last));
    }
  }

  // Computes the moments of each lane of `rows` rows, which replace those of their first chunk.
  // There must be room for one more chunk after the last.
  template <bool kFused>
  void run(Moments* chunks, int64_t rows) const {
    chunks[chunks_] = Moments{};
    const Part* first = parts_;
    for (int s = 0; s < count_; ++s) {
      const Part* const last = first + sums_[s].parts;
      for (int64_t i = 0; i < rows * kLanes; i += kFloats) {
        Floats mean = {}, squares = {};
        for (const Part* p = first; p < last; ++p) {
          const Moments& more = chunks[p->from];
          const Floats away = load<Floats>(more.mean + i) - mean;
          const Floats part = p->share * away;
          squares = madd<kFused>(away * p->before, part, squares + load<Floats>(more.squares + i));
          mean = mean + part;
        }
        store(chunks[sums_[s].to].mean + i, mean);
        store(chunks[sums_[s].to].squares + i, squares);
      }
      first = last;
    }
  }

 private:
  static constexpr int kMostLevels = 8;
  // An operand of a merge: its share of the result, if `before` vectors have been merged already.
  struct Part {
    float share, before;
    int from;
  };
  struct Sum {
    int to, parts;
  };

  // Item i of a level covers 2^level chunks, and is stored in the place of the first of them.
  int items(int level) const { return chunks_ >> level; }
  int64_t vectors(int level, int first, int last) const {
    const int64_t end = (int64_t{last} << level) * kChunk;
    return (end < vectors_ ? end : vectors_) - (int64_t{first} << level) * kChunk;
  }
  void begin(int to) {
    sums_[count_++] = {to, 0};
    before_ = 0;
  }
  void add(int from, int64_t vectors) {
    const int64_t all = before_ + vectors;
    const float share = all == 0 ? 0.0f : static_cast<float>(vectors) / static_cast<float>(all);
    parts_[all_parts_++] = {share, static_cast<float>(before_), from};
    ++sums_[count_ - 1].parts;
    before_ = all;
  }
  void add_items(int level, int first, int last) {
    for (int i = first; i < last; ++i) add(i << level, vectors(level, i, i + 1));
  }

  int64_t vectors_, before_ = 0;
  int chunks_, count_ = 0, all_parts_ = 0;
  Sum sums_[kMostChunks + 2 * kMostLevels];
  Part parts_[2 * kMostChunks + 2 * kMostLevels];
};

// Three perfect shuffles of the rows of a matrix transpose it.
POSENC_INLINE void transpose(Lanes* m) {
  for (int round = 0; round < 3; ++round) {
    Lanes to[kLanes];
    for (int i = 0; i < kLanes / 2; ++i) {
      to[2 * i] = __builtin_shufflevector(m[i], m[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      to[2 * i + 1] = __builtin_shufflevector(m[i], m[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    for (int i = 0; i < kLanes; ++i) m[i] = to[i];
  }
}

// The means and reciprocal standard deviations of eight rows, one in each lane.
struct RowScales {
  Lanes mean, rstd;
};

// Steps 3 and 4. `of_lanes` are the rows' results of step 2.
template <bool kFused>
RowScales finish_rows(const float* x, int64_t n, const Moments& of_lanes, int64_t width,
                      float eps) {
  Lanes mean = {}, squares = {};
  int64_t count = 0;
  const int64_t vectors = width / kLanes;
  for (int64_t i = vectors * kLanes; i < width; ++i) {
    Lanes value;
    for (int r = 0; r < kLanes; ++r) value[r] = x[(r < n ? r : 0) * width + i];
    const Lanes away = value - mean;
    mean = mean + away / static_cast<float>(++count);
    squares = squares + away * (value - mean);
  }
  Lanes means[kLanes], sums[kLanes];
  for (int r = 0; r < kLanes; ++r) {
    means[r] = load<Lanes>(of_lanes.mean + r * kLanes);
    sums[r] = load<Lanes>(of_lanes.squares + r * kLanes);
  }
  transpose(means);
  transpose(sums);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int64_t all = count + vectors;
    const float share = all == 0 ? 0.0f : static_cast<float>(vectors) / static_cast<float>(all);
    const Lanes away = means[lane] - mean, part = share - Lanes{};
    mean = madd<kFused>(part, away, mean);
    const Lanes before = static_cast<float>(count) - Lanes{};
    squares = squares + madd<kFused>(away * away * part, before, sums[lane]);
    count = all;
  }
  const Lanes variance = squares / static_cast<float>(width);
  const Lanes positive = variance < 0.0f ? Lanes{} : variance;
  return {mean, 1.0f / square_root(positive + eps)};
}

}  // namespace
}  // namespace posenc::kernels::embed::POSENC_ISA
