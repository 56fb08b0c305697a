// Attention of one query per row over cached keys and values. Each row, or set of rows, lists the
// tokens that it sees, so that no mask is needed and beams are reordered by changing the lists. The
// rows of a set take a block of keys, or of values, one after the other while it is in the cache; a
// row's arithmetic is the same in any set. Compiled once per instruction set.
//
// The reference path is at::scaled_dot_product_attention over gathered keys and values.
#include "kernels/inference.h"
#include "kernels/isa/exponential.h"
#include "kernels/isa/float_lanes.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

constexpr int kKeys = 4;   // processed at a time
constexpr int kAhead = 8;  // prefetch distance of keys; values are prefetched as keys pass
constexpr int kChunk = 4;  // sixteens of a head's width processed at a time: 64 floats
// Tokens that the rows of a set take one after the other, and whose weighted values are added up
// before they are added to those before: a chain over all would round nearly equal terms alike.
constexpr int64_t kBlock = 64;

// The tokens of a set, and a head.
struct Tokens {
  const float* const* all;
  int64_t keys, values, count, width;  // keys, values: this head's offsets in a token
  const float* key(int64_t j) const { return all[j] + keys; }
  const float* value(int64_t j) const { return all[j] + values; }
};
// Some of them.
struct Part {
  int64_t begin, end;
};

POSENC_INLINE void prefetch_row(const float* row, int64_t width) {
  for (int64_t i = 0; i < width; i += kWide) __builtin_prefetch(row + i);
}

// query . key of four tokens; if there are fewer, the last token is repeated.
POSENC_INLINE Floats4 dots(const float* query, int64_t width, const float* const (&key)[kKeys]) {
  Wide sums[kKeys] = {};
  const int64_t whole = width / kWide * kWide, rest = width - whole;
  for (int64_t i = 0; i < whole; i += kWide) {
    const Wide q = load_wide(query + i);
#pragma GCC unroll 4
    for (int j = 0; j < kKeys; ++j) sums[j] = fma(q, load_wide(key[j] + i), sums[j]);
  }
  if (rest > 0) {
    const Wide q = load_wide(query + whole, rest);
    for (int j = 0; j < kKeys; ++j) sums[j] = fma(q, load_wide(key[j] + whole, rest), sums[j]);
  }
  return totals(sums[0], sums[1], sums[2], sums[3]);
}

// What is added to the scores.
struct Terms {
  const float* bias;      // of each token, or null
  const float* relative;  // of each distance from the last token, or null

  POSENC_INLINE float add(float score, int64_t j, int64_t count) const {
    if (bias != nullptr) score += bias[j];
    return relative != nullptr ? score + relative[count - 1 - j] : score;
  }
};

// Writes the scores of a part; returns the largest, or `most`. `is_first`: no row has read it.
float write_scores(const Tokens& tokens, Part part, const float* query, float scale,
                   const Terms& terms, bool is_first, float most, float* scores) {
  for (int64_t j = part.begin; j < part.end; j += kKeys) {
    const float* key[kKeys];
    const int64_t n = part.end - j < kKeys ? part.end - j : kKeys;
    for (int64_t i = 0; i < kKeys; ++i) key[i] = tokens.key(j + (i < n ? i : n - 1));
    for (int64_t i = 0; is_first && i < n; ++i) {
      prefetch_row(tokens.value(j + i), tokens.width);
      if (j + i + kAhead < tokens.count) prefetch_row(tokens.key(j + i + kAhead), tokens.width);
    }
    const Floats4 sums = dots(query, tokens.width, key);
    for (int64_t i = 0; i < n; ++i) {
      const float score = terms.add(sums[i] * scale, j + i, tokens.count);
      scores[j + i] = score;
      most = score > most ? score : most;
    }
  }
  return most;
}

// Caps the scores, of which there is room for a multiple of kWide, and adds the terms; returns the
// largest.
float cap_scores(int64_t count, float softcap, const Terms& terms, float* scores) {
  for (int64_t j = count; j % kWide != 0; ++j) scores[j] = 0.0f;
  for (int64_t j = 0; j < count; j += kFloats)
    store(scores + j, soft_capped(load<Floats>(scores + j), softcap));
  float most = -__builtin_inff();
  for (int64_t j = 0; j < count; ++j) {
    scores[j] = terms.add(scores[j], j, count);
    most = scores[j] > most ? scores[j] : most;
  }
  return most;
}

// Replaces scores by exp(score - most); returns their sum. There is room up to a multiple of kWide.
float exponentiate(float* scores, int64_t count, float most) {
  for (int64_t j = count; j % kWide != 0; ++j) scores[j] = -__builtin_inff();
  Wide sum = {};
  for (int64_t j = 0; j < count; j += kWide) {
    for (int i = 0; i < kParts; ++i) {
      const Floats weight = exponential(load<Floats>(scores + j + i * kFloats) - broadcast(most));
      store(scores + j + i * kFloats, weight);
      sum.part[i] += weight;
    }
  }
  return total(sum);
}

// out[0 .. 16 kSixteens) += sum over j of weights[j] * value(j), in the columns from `at` on, added
// up one after the other.
template <int kSixteens>
void mix(const Tokens& tokens, Part part, const float* weights, int64_t at, float* out) {
  Wide sums[kSixteens] = {};
  for (int64_t j = part.begin; j < part.end; ++j) {
    const float* const value = tokens.value(j) + at;
    Wide weight;
    for (Floats& one : weight.part) one = broadcast(weights[j]);
#pragma GCC unroll 4
    for (int i = 0; i < kSixteens; ++i)
      sums[i] = fma(weight, load_wide(value + i * kWide), sums[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kSixteens; ++i)
    for (int lanes = 0; lanes < kParts; ++lanes) {
      float* const to = out + i * kWide + lanes * kFloats;
      store(to, load<Floats>(to) + sums[i].part[lanes]);
    }
}

void mix_all(const Tokens& tokens, Part part, const float* weights, float* out) {
  int64_t at = 0;
  for (; at + kChunk * kWide <= tokens.width; at += kChunk * kWide)
    mix<kChunk>(tokens, part, weights, at, out + at);
  for (; at + kWide <= tokens.width; at += kWide) mix<1>(tokens, part, weights, at, out + at);
  for (; at < tokens.width; ++at) {
    float sum = 0.0f;
    for (int64_t j = part.begin; j < part.end; ++j) sum += weights[j] * tokens.value(j)[at];
    out[at] += sum;
  }
}

// `rows` rows of a set from `first` on, at most kSetRows, and one head.
void attend_rows(const AttentionRequest& a, const Tokens& tokens, int64_t first, int64_t rows,
                 int64_t head, float* scratch) {
  const int64_t room = (tokens.count + kWide - 1) / kWide * kWide;
  const bool caps = a.softcap != 0.0f;
  const auto terms_of = [&](int64_t row) {
    return Terms{
        a.bias != nullptr ? a.bias + row * a.bias_row_stride + head * a.bias_head_stride : nullptr,
        a.relative != nullptr ? a.relative + head * a.relative_stride : nullptr};
  };
  const auto out_of = [&](int64_t row) { return a.out + row * a.out_stride + head * a.width; };
  const auto each_block = [&](const auto& f) {
    for (int64_t begin = 0; begin < tokens.count; begin += kBlock) {
      const Part part = {begin, begin + kBlock < tokens.count ? begin + kBlock : tokens.count};
      for (int64_t i = 0; i < rows; ++i) f(part, i);
    }
  };
  float most[kSetRows], factors[kSetRows];
  for (int64_t i = 0; i < rows; ++i) most[i] = -__builtin_inff();
  each_block([&](Part part, int64_t i) {
    const int64_t row = first + i;
    most[i] = write_scores(tokens, part, a.query + row * a.query_stride + head * a.width, a.scale,
                           caps ? Terms{} : terms_of(row), i == 0, most[i], scratch + i * room);
  });
  for (int64_t i = 0; i < rows; ++i) {
    float* const scores = scratch + i * room;
    if (caps) most[i] = cap_scores(tokens.count, a.softcap, terms_of(first + i), scores);
    const float sum =
        exponentiate(scores, tokens.count, most[i] == -__builtin_inff() ? 0.0f : most[i]);
    factors[i] = sum == 0.0f ? 0.0f : 1.0f / sum;  // 0: it sees no token
    memset(out_of(first + i), 0, sizeof(float) * static_cast<size_t>(a.width));
  }
  each_block(
      [&](Part part, int64_t i) { mix_all(tokens, part, scratch + i * room, out_of(first + i)); });
  for (int64_t i = 0; i < rows; ++i) {
    float* const out = out_of(first + i);
    for (int64_t at = 0; at < a.width; ++at) out[at] *= factors[i];
  }
}

void attend(const AttentionRequest& a, int64_t begin, int64_t end, float* scratch) {
  for (int64_t item = begin; item < end; ++item) {
    const int64_t set = item / a.heads, head = item % a.heads;
    const int64_t column = head / a.group * (a.head_stride != 0 ? a.head_stride : a.width);
    const Tokens tokens = {a.tokens[set], a.key + column, a.value + column, a.counts[set], a.width};
    const int64_t last = a.sets != nullptr ? a.sets[set + 1] : set + 1;
    for (int64_t row = a.sets != nullptr ? a.sets[set] : set; row < last; row += kSetRows)
      attend_rows(a, tokens, row, last - row < kSetRows ? last - row : kSetRows, head, scratch);
  }
}

}  // namespace

const AttentionKernels attention_step_kernels = {attend};

}  // namespace posenc::kernels::inference::POSENC_ISA
