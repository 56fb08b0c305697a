#pragma once

#include <optional>

#include "inference/rows/packing.h"
#include "inference/rows/stream.h"
#include "kernels/inference.h"
#include "posenc/transformer/attention/multihead_attention.h"

namespace posenc::inference {

/// The heads of queries, keys and values, side by side in each row of their projection.
struct HeadSizes {
  int64_t heads, kv_heads, head_dim;

  /// Those of a module.
  static HeadSizes of(const MultiheadAttentionOptions& options);

  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t width() const { return query_width() + 2 * kv_width(); }
  bool operator==(const HeadSizes&) const = default;
};

using kernels::inference::AttentionProducts;

/// How scores are computed, and what they weigh.
struct Scoring {
  float scale;  ///< of the products of queries and keys
  AttentionProducts products = AttentionProducts::Float32;
  float softcap = 0.0F;  ///< of the scores, before masks and biases; 0: none
};

/// softmax(scores) v of packed rows in the layout of the projections: query (rows, .), key
/// and value (key rows, .), with the heads of each row side by side  ->  out (rows, .), without
/// gaps.
struct AttentionInput {
  at::Tensor query, key, value;
  const Packing& queries;
  const Packing& keys;
  HeadSizes sizes;
  Scoring scoring;
  ScoreMask mask;  ///< what the packing does not cover, by the kept rows of each sequence
  std::optional<int64_t> window = std::nullopt;  ///< of TransformerLayerOptions
  int64_t out_stride = 0;                        ///< of the rows of the result; 0: without gaps
  /// Whether the distances of the mask count rows, and not what was between them.
  bool counts_tokens = false;
  const float* const* masks = nullptr;    ///< those of SequenceAttentionRequest, by keys
  const int64_t* query_places = nullptr;  ///< of SequenceAttentionRequest
  /// Whether the mask's distances are those of longer sequences, of as many queries as keys.
  bool has_longer_distances = false;
};
void attend(const AttentionInput& input, float* out);
/// attend() for some of the sequences; `out` is that of all.
void attend(const AttentionInput& input, const SequenceRange& sequences, float* out);

/// Where ScoreMask::by_distance, with room for a panel of queries, has what is added at distance 0.
inline int64_t distance_zero(const at::Tensor& by_distance) {
  return (by_distance.size(1) - kernels::inference::kPanelRows) / 2;
}

/// The factor of the scores of heads of this width, unless a module has its own: 1 /
/// sqrt(head_dim).
float score_scale(int64_t head_dim);

/// x = norm(x) for the heads of each row, side by side in its first `width` columns: each by
/// itself, by one weight or one of its own, or all as one if that is the norm's width. The rows are
/// `stride` apart.
void normalise_heads(float* x, int64_t stride, int64_t rows, int64_t width, const Norm& norm);

/// Limits the first `width` columns of rows to -clip .. clip.
void clip_rows(float* x, int64_t stride, int64_t rows, int64_t width, float clip);

/// The first `width` columns of each row, times its factor.
void multiply_rows(float* x, int64_t stride, int64_t rows, int64_t width, const float* factors);

}  // namespace posenc::inference
