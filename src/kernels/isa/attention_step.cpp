// Attention of one query per row over cached keys and values. Each row lists the tokens that it
// sees, so that no mask is needed and beams are reordered by changing the lists. Compiled once per
// instruction set.
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

// One row and head.
struct One {
  const float* query;
  const float* const* tokens;
  int64_t keys, values, count, width;  // keys, values: this head's offsets in a token
  const float* key(int64_t j) const { return tokens[j] + keys; }
  const float* value(int64_t j) const { return tokens[j] + values; }
};

POSENC_INLINE void prefetch_row(const float* row, int64_t width) {
  for (int64_t i = 0; i < width; i += kWide) __builtin_prefetch(row + i);
}

// query . key of four tokens; if there are fewer, the last token is repeated.
POSENC_INLINE Floats4 dots(const One& one, const float* const (&key)[kKeys]) {
  Wide sums[kKeys] = {};
  const int64_t whole = one.width / kWide * kWide, rest = one.width - whole;
  for (int64_t i = 0; i < whole; i += kWide) {
    const Wide q = load_wide(one.query + i);
#pragma GCC unroll 4
    for (int j = 0; j < kKeys; ++j) sums[j] = fma(q, load_wide(key[j] + i), sums[j]);
  }
  if (rest > 0) {
    const Wide q = load_wide(one.query + whole, rest);
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

// Writes the scores; returns the largest.
float write_scores(const One& one, float scale, const Terms& terms, float* scores) {
  float most = -__builtin_inff();
  for (int64_t j = 0; j < one.count; j += kKeys) {
    const float* key[kKeys];
    const int64_t n = one.count - j < kKeys ? one.count - j : kKeys;
    for (int64_t i = 0; i < kKeys; ++i) key[i] = one.key(j + (i < n ? i : n - 1));
    for (int64_t i = 0; i < n; ++i) {
      prefetch_row(one.value(j + i), one.width);
      if (j + i + kAhead < one.count) prefetch_row(one.key(j + i + kAhead), one.width);
    }
    const Floats4 sums = dots(one, key);
    for (int64_t i = 0; i < n; ++i) {
      const float score = terms.add(sums[i] * scale, j + i, one.count);
      scores[j + i] = score;
      most = score > most ? score : most;
    }
  }
  return most;
}

// Caps the scores, of which there is room for a multiple of kWide, and adds the terms; returns the
// largest.
float cap_scores(const One& one, float softcap, const Terms& terms, float* scores) {
  for (int64_t j = one.count; j % kWide != 0; ++j) scores[j] = 0.0f;
  for (int64_t j = 0; j < one.count; j += kFloats)
    store(scores + j, soft_capped(load<Floats>(scores + j), softcap));
  float most = -__builtin_inff();
  for (int64_t j = 0; j < one.count; ++j) {
    scores[j] = terms.add(scores[j], j, one.count);
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

// out[0 .. 16 kSixteens) = factor * sum over j of weights[j] * value(j), in the columns from `at`
// on.
template <int kSixteens>
void mix(const One& one, const float* weights, float factor, int64_t at, float* out) {
  Wide sums[kSixteens] = {};
  for (int64_t j = 0; j < one.count; ++j) {
    const float* const value = one.value(j) + at;
    Wide weight;
    for (Floats& part : weight.part) part = broadcast(weights[j]);
#pragma GCC unroll 4
    for (int i = 0; i < kSixteens; ++i)
      sums[i] = fma(weight, load_wide(value + i * kWide), sums[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kSixteens; ++i)
    for (int part = 0; part < kParts; ++part)
      store(out + i * kWide + part * kFloats, sums[i].part[part] * broadcast(factor));
}

void mix_all(const One& one, const float* weights, float factor, float* out) {
  int64_t at = 0;
  for (; at + kChunk * kWide <= one.width; at += kChunk * kWide)
    mix<kChunk>(one, weights, factor, at, out + at);
  for (; at + kWide <= one.width; at += kWide) mix<1>(one, weights, factor, at, out + at);
  for (; at < one.width; ++at) {
    float sum = 0.0f;
    for (int64_t j = 0; j < one.count; ++j) sum += weights[j] * one.value(j)[at];
    out[at] = sum * factor;
  }
}

void attend(const AttentionRequest& a, int64_t begin, int64_t end, float* scratch) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t row = i / a.heads, head = i % a.heads;
    const int64_t column = head * a.width, key_column = head / a.group * a.width;
    const One one = {a.query + row * a.query_stride + column,
                     a.tokens[row],
                     a.key + key_column,
                     a.value + key_column,
                     a.counts[row],
                     a.width};
    const float* const bias =
        a.bias != nullptr ? a.bias + row * a.bias_row_stride + head * a.bias_head_stride : nullptr;
    float* const out = a.out + row * a.out_stride + column;
    const float* const relative =
        a.relative != nullptr ? a.relative + head * a.relative_stride : nullptr;
    const Terms terms = {bias, relative};
    const bool caps = a.softcap != 0.0f;
    float most = write_scores(one, a.scale, caps ? Terms{} : terms, scratch);
    if (caps) most = cap_scores(one, a.softcap, terms, scratch);
    const float sum = exponentiate(scratch, one.count, most == -__builtin_inff() ? 0.0f : most);
    mix_all(one, scratch, sum == 0.0f ? 0.0f : 1.0f / sum, out);  // 0: it sees no token
  }
}

}  // namespace

const AttentionKernels attention_step_kernels = {attend};

}  // namespace posenc::kernels::inference::POSENC_ISA
