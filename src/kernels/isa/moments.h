// Means and standard deviations of rows, in the bits of at::layer_norm. Included by front.cpp,
// inside the instruction set's own namespace.
//
// ATen (native/cpu/moments_utils.h) runs Welford's algorithm in eight lanes, on AVX-512 as well:
//  1. over each chunk of 16 vectors, from zero;
//  2. chunks are merged in pairs, those in pairs again and so on, as a binary counter counts;
//  3. the row's last elements, fewer than eight, are added one by one, from zero;
//  4. and to these the eight lanes, one after another.
// Each step depends on the one before it, but neither chunks nor rows depend on each other: here
// four chunks run side by side, and 3 and 4 have a row in each lane.
#pragma once
#include "kernels/front.h"
#include "kernels/isa/vectors.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

using namespace posenc::kernels::POSENC_ISA;

typedef float Lanes __attribute__((vector_size(32)));
constexpr int kLanes = 8;
constexpr int kChunk = 16;  // vectors

// a * b + c, rounded once or twice.
template <bool kFused>
POSENC_INLINE Lanes madd(Lanes a, Lanes b, Lanes c) {
#if defined(__AVX2__)
  if constexpr (kFused) return _mm256_fmadd_ps(a, b, c);
#endif
  return a * b + c;
}

// Of some elements: their mean, and the sum of their squared distances from it.
struct Moments {
  Lanes mean, squares;
};

// Step 1, for kChunks chunks of n vectors.
template <bool kFused, int kChunks>
void chunk_moments(const float* x, int n, Moments* to) {
  static constexpr float kInverse[kChunk] = {
      1.0f,     1.0f / 2,  1.0f / 3,  1.0f / 4,  1.0f / 5,  1.0f / 6,  1.0f / 7,  1.0f / 8,
      1.0f / 9, 1.0f / 10, 1.0f / 11, 1.0f / 12, 1.0f / 13, 1.0f / 14, 1.0f / 15, 1.0f / 16};
  Moments m[kChunks] = {};
  for (int j = 0; j < n; ++j) {
    const Lanes inverse = kInverse[j] - Lanes{};
#pragma GCC unroll 8
    for (int c = 0; c < kChunks; ++c) {
      const Lanes value = load<Lanes>(x + (c * kChunk + j) * kLanes);
      const Lanes away = value - m[c].mean;
      m[c].mean = madd<kFused>(inverse, away, m[c].mean);
      m[c].squares = madd<kFused>(away, value - m[c].mean, m[c].squares);
    }
  }
  for (int c = 0; c < kChunks; ++c) to[c] = m[c];
}

// The same for all chunks of a row, as many side by side as there are registers for.
template <bool kFused>
void row_chunks(const float* x, int64_t vectors, Moments* to) {
  constexpr int kMost = 6;
  static constexpr decltype(&chunk_moments<kFused, 1>) kMany[kMost] = {
      chunk_moments<kFused, 1>, chunk_moments<kFused, 2>, chunk_moments<kFused, 3>,
      chunk_moments<kFused, 4>, chunk_moments<kFused, 5>, chunk_moments<kFused, 6>};
  int64_t whole = vectors / kChunk;
  while (whole > 0) {
    const int64_t n = whole < kMost ? whole : kMost;
    kMany[n - 1](x, kChunk, to);
    x += n * kChunk * kLanes;
    to += n;
    whole -= n;
  }
  if (vectors % kChunk != 0) kMany[0](x, static_cast<int>(vectors % kChunk), to);
}

// Step 2 as a list of merges, which is the same for all rows of one width.
class MergePlan {
 public:
  static constexpr int kMostChunks = kFrontWidest / kLanes / kChunk;
  static constexpr int kMostLevels = 8;

  explicit MergePlan(int64_t width)
      : vectors_(width / kLanes), chunks_((vectors_ + kChunk - 1) / kChunk) {
    int depth = 0;
    while ((int64_t{1} << depth) < chunks_) ++depth;
    if (depth > 1) levels_ = depth;
    int64_t counts[kMostLevels] = {};
    for (int64_t i = 0; i < chunks_; ++i) {
      const int64_t left = vectors_ - i * kChunk;
      merge(counts, 0, kNextChunk, left < kChunk ? left : kChunk);
      for (int level = 1; level < depth && ((i + 1) >> (level - 1) & 1) == 0; ++level) {
        merge(counts, level, level - 1, counts[level - 1]);
        counts[level - 1] = 0;
      }
    }
    for (int level = 1; level < depth; ++level) merge(counts, 0, level, counts[level]);
  }

  int64_t vectors() const { return vectors_; }
  int64_t chunks() const { return chunks_; }

  // The moments of each lane of some rows, from those of their chunks. The rows go from step to
  // step together, because a step takes longer to finish than to begin.
  template <bool kFused>
  void run(const Moments* chunks, int64_t rows, Moments* to) const {
    Moments levels[kMostLevels][kLanes];
    for (int level = 0; level < levels_; ++level)
      for (Moments& m : levels[level]) m = Moments{};
    for (int s = 0; s < steps_; ++s) {
      const Step& step = step_[s];
      const bool is_chunk = step.from == kNextChunk;
      for (int64_t r = 0; r < rows; ++r) {
        Moments& more = levels[is_chunk ? 0 : step.from][r];
        add<kFused>(step, is_chunk ? chunks[r * chunks_] : more, levels[step.to][r]);
        if (!is_chunk) more = Moments{};
      }
      chunks += is_chunk;
    }
    for (int64_t r = 0; r < rows; ++r) to[r] = levels[0][r];
  }

 private:
  static constexpr int kNextChunk = -1;
  struct Step {
    float share, before;
    int to, from;
  };

  void merge(int64_t* counts, int to, int from, int64_t added) {
    const int64_t all = counts[to] + added;
    const float share = all == 0 ? 0.0f : static_cast<float>(added) / static_cast<float>(all);
    step_[steps_++] = {share, static_cast<float>(counts[to]), to, from};
    counts[to] = all;
  }

  template <bool kFused>
  static POSENC_INLINE void add(const Step& step, const Moments& more, Moments& m) {
    const Lanes away = more.mean - m.mean;
    const Lanes part = step.share * away;
    m.squares = madd<kFused>(away * step.before, part, m.squares + more.squares);
    m.mean = m.mean + part;
  }

  int64_t vectors_, chunks_;
  int levels_ = 1, steps_ = 0;
  Step step_[2 * kMostChunks + kMostLevels];
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

POSENC_INLINE Lanes square_root(Lanes x) {
#if defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#else
  __m128 half[2];
  memcpy(half, &x, sizeof half);
  half[0] = _mm_sqrt_ps(half[0]);
  half[1] = _mm_sqrt_ps(half[1]);
  return load<Lanes>(half);
#endif
}

// Of eight rows, one in each lane.
struct RowScales {
  Lanes mean, rstd;
};

// Steps 3 and 4. `of_lanes` are the rows' results of step 2.
template <bool kFused>
RowScales finish_rows(const float* const* rows, const Moments* of_lanes, int64_t width, float eps) {
  Lanes mean = {}, squares = {};
  int64_t count = 0;
  const int64_t vectors = width / kLanes;
  for (int64_t i = vectors * kLanes; i < width; ++i) {
    Lanes value;
    for (int r = 0; r < kLanes; ++r) value[r] = rows[r][i];
    const Lanes away = value - mean;
    mean = mean + away / static_cast<float>(++count);
    squares = squares + away * (value - mean);
  }
  Lanes means[kLanes], sums[kLanes];
  for (int r = 0; r < kLanes; ++r) {
    means[r] = of_lanes[r].mean;
    sums[r] = of_lanes[r].squares;
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
