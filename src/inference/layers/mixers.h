#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "inference/attention/attention.h"
#include "inference/attention/distance_keys.h"
#include "inference/attention/grid_biases.h"
#include "inference/attention/relative_bias.h"
#include "inference/attention/rotation.h"
#include "inference/layers/block_layers.h"
#include "inference/rows/convolution.h"
#include "posenc/positions/relative/index.h"

// What mixes the rows of a sequence in frozen layers, a struct for each mixer and a class for those
// of its kind in a stack.

namespace posenc::inference {

/// A MultiheadAttention, or a ConvolutionalAttention.
struct AttentionStep {
  HeadSizes sizes;
  float score_scale;
  Projection in_proj, out_proj;  ///< (sizes.width(), D), (D, sizes.query_width())
  Projection values = {};        ///< apart from in_proj where the input of queries is rotated
  std::optional<Convolution> convolution = std::nullopt;  ///< beside the attention
  Norm query_norm = {}, key_norm = {};                    ///< of each head
  std::optional<std::size_t> rotation = std::nullopt;     ///< of the stack's rotations
  std::optional<std::size_t> relative = std::nullopt;     ///< of the stack's relative biases
  std::optional<std::size_t> grid_bias = std::nullopt;    ///< of the stack's grid biases
  std::optional<int64_t> window = std::nullopt;

  /// The width of the rows of which out_proj is taken.
  int64_t context_width() const { return (convolution ? 2 : 1) * sizes.query_width(); }
};
/// Their biases and rotations are shared.
class AttentionMixers : public Mixers {
 public:
  bool reads_int8() const override;
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;
  bool is_axial() const { return !rotations.empty() && rotations.front().is_axial(); }

  std::vector<AttentionStep> steps;
  std::vector<Rotation> rotations;
  bool rotates_input = false;  ///< and not queries and keys
  std::vector<RelativeBias> relative_biases;
  GridBiases grid_biases;
  std::optional<AlibiSlopes> alibi;
  bool counts_tokens = false;  ///< whether distances of ALiBi count rows without padding
};

/// functional::fourier_mixing() of the whole batch.
class FourierMixers : public Mixers {
 public:
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;
};

/// What attentions have whose scores have terms of relative positions.
struct RelativeStep {
  HeadSizes sizes;
  float score_scale;
  Projection in_proj, out_proj;
  std::optional<int64_t> window = std::nullopt;
};
/// A DisentangledAttention. Its rows of positions are computed once: they are the products of the
/// table with projections, and do not depend on the input.
struct DisentangledStep : RelativeStep {
  at::Tensor position_keys, position_queries;  ///< (H, R, Dh), or undefined
};
class DisentangledMixers : public Mixers {
 public:
  explicit DisentangledMixers(relative::Index index) : index(std::move(index)) {}
  bool reads_int8() const override;
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  relative::Index index;
  std::vector<DisentangledStep> steps;
};

/// A TransformerXLAttention: its queries have the content_bias already.
struct TransformerXLStep : RelativeStep {
  at::Tensor key_bias;      ///< (H, Dh), beside the keys of distances
  at::Tensor segment_bias;  ///< (H, Dh), undefined without segments
  at::Tensor segment_keys;  ///< (H, 2, Dh), scaled, the same
};
class TransformerXLMixers : public Mixers {
 public:
  explicit TransformerXLMixers(const TransformerXLOptions& options)
      : options(options), distances(options) {}
  bool reads_int8() const override;
  /// Throws the errors of FrozenTransformerEncoder for segments and bi_data.
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  TransformerXLOptions options;
  DistanceKeys distances;  ///< of each step
  std::vector<TransformerXLStep> steps;
};

/// A ConformerConvolution, whose batch norm is part of its depthwise convolution; the norm of its
/// input is the block's before.
struct ConformerConvolutionStep {
  Projection pointwise1, pointwise2;
  at::Tensor depthwise, bias;  ///< (K, D), (D)
  Activation activation;       ///< after them
};
class ConformerConvolutionMixers : public Mixers {
 public:
  bool reads_int8() const override;
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  std::vector<ConformerConvolutionStep> steps;
};

/// A ConvolutionBeside, which reads the input of the layers and adds to the output of the first.
class ConvolutionBesideMixers : public Mixers {
 public:
  bool mixes() const override { return false; }
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;

  Projection projection;  ///< (D, K D), of K neighbouring rows side by side
  int64_t size = 0;       ///< K
  Activation activation = Activation::ReLU;
};

}  // namespace posenc::inference
