#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "inference/attention/attention.h"
#include "inference/attention/relative_bias.h"
#include "inference/linear/weight_converter.h"
#include "inference/rows/stream.h"
#include "posenc/transformer/layers/transformer_decoder.h"

namespace posenc::inference {

/// A decoder layer, whose projections have the widths of the stack's heads. Each norm `after` a
/// block is the one that follows it: the block's own in a post-norm stack; in a pre-norm stack,
/// that of the next block, or the stack's last.
struct DecoderLayer {
  Projection in_proj, out_proj;
  Projection query, memory, cross_out;
  FeedForward feed_forward;
  Scoring scoring, cross_scoring;
  std::optional<size_t> relative;  ///< of the stack's relative biases, in the self-attention
  Norm after_attention = {}, after_cross = {}, after_feed_forward = {};
};

/// The layers of a TransformerDecoder.
struct DecoderStack {
  bool norm_first;
  int64_t heads, width;  ///< width: D
  Norm entry;            ///< pre-norm: before the first block
  Norm last;             ///< post-norm: after all layers
  std::vector<DecoderLayer> layers;
  HeadSizes sizes = {};  ///< of both attentions of each layer
  std::vector<RelativeBias> relative_biases = {};
  std::optional<AlibiSlopes> alibi = std::nullopt;

  /// The residual stream in `x` (rows, D). `input` is a buffer of the same size, used only by a
  /// pre-norm stack.
  Stream stream(float* x, float* input, int64_t rows) const {
    return {x, norm_first ? input : x, rows, width, row_regime(rows)};
  }
  /// How blocks read their input.
  RowFormat row_format() const {
    RowFormat format = RowFormat::Float32;
    for (const DecoderLayer& layer : layers) {
      format = either(format, layer.in_proj.row_format());
      format = either(format, layer.feed_forward.wide.row_format());
    }
    return format;
  }
  /// Where the result is after all layers: in `input` if a pre-norm stack has a last norm, else in
  /// x.
  float* result(const Stream& stream) const {
    return layers.back().after_feed_forward ? stream.input : stream.x;
  }
};

/// `prefix` begins the names of the stack's parts in errors: `decoder.` or empty. The final norm is
/// multiplied by `output_scale`, which must be 1 without one.
DecoderStack freeze_stack(const TransformerDecoderImpl& decoder, const std::string& prefix,
                          WeightConverter& convert, double output_scale = 1.0);

/// The rows (rows, D) that the layers' `memory` projections read, which are not changed; `buffer`
/// becomes the memory of the converted ones, if one of the projections reads them.
Stream memory_stream(const DecoderStack& stack, const at::Tensor& rows, at::Tensor& buffer);

/// Runs rows (rows, D) through all layers; may overwrite them. `memory_weights`, if given, receives
/// the weights (B, L, S) of the last layer's attention to the memory, averaged over the heads, of
/// batches without packing.
at::Tensor run(const DecoderStack& stack, const at::Tensor& rows, const at::Tensor& memory,
               const Packing& packing, const Packing& memory_packing, const ScoreMask& mask,
               const ScoreMask& memory_mask, at::Tensor* memory_weights = nullptr);

}  // namespace posenc::inference
