#pragma once

#include <vector>

#include "inference/packing.h"
#include "inference/stream.h"
#include "posenc/nn/transformer/transformer_decoder.h"
#include "posenc/nn/transformer/transformer_encoder.h"

namespace posenc::inference {

/// An encoder layer. A norm stands for the one that follows its block: the block's own in a
/// post-norm stack; in a pre-norm stack that of the next block, or the stack's last.
struct EncoderLayer {
  Projection in_proj, out_proj;  ///< (3D, D), (D, D)
  FeedForward feed_forward;
  Norm after_attention, after_feed_forward;
};

struct DecoderLayer {
  Projection in_proj, out_proj;
  Projection query, memory, cross_out;  ///< (D, D), (2D, D), (D, D)
  FeedForward feed_forward;
  Norm after_attention, after_cross, after_feed_forward;
};

/// What both stacks are beside their layers.
template <typename Layer>
struct Stack {
  bool norm_first;
  int64_t heads, width;  ///< width: D
  Norm entry;            ///< pre-norm: of the first block
  Norm last;             ///< post-norm: after all layers
  std::vector<Layer> layers;

  /// The residual stream in `x` (rows, D); `input` is memory of the same size, and is used if the
  /// stack normalises first.
  Stream stream(float* x, float* input, int64_t rows) const {
    return {x, norm_first ? input : x, rows, width, rows_case(rows)};
  }
  /// Where the result is after all layers: with a last norm in a pre-norm stack, in the input.
  float* result(const Stream& stream) const {
    return layers.back().after_feed_forward ? stream.input : stream.x;
  }
};
using EncoderStack = Stack<EncoderLayer>;
using DecoderStack = Stack<DecoderLayer>;

EncoderStack freeze_stack(TransformerEncoderImpl& encoder, Multipliers& multipliers);
DecoderStack freeze_stack(TransformerDecoderImpl& decoder, Multipliers& multipliers);

/// softmax(q k^T / sqrt(Dh)) v of rows that lie as `packing` says, in the projections' layout:
/// query (rows, .), key and value (key rows, .), the heads of each side by side  ->  (rows, D).
struct AttentionInput {
  at::Tensor query, key, value;
  const Packing& queries;
  const Packing& keys;
  int64_t heads;
  ScoreMask mask;  ///< of a batch without packing
};
at::Tensor attend(const AttentionInput& input);

/// rows (rows, D) through all layers; they may be overwritten.
at::Tensor run(const EncoderStack& stack, const at::Tensor& rows, const Packing& packing,
               const ScoreMask& mask);
at::Tensor run(const DecoderStack& stack, const at::Tensor& rows, const at::Tensor& memory,
               const Packing& packing, const Packing& memory_packing, const ScoreMask& mask,
               const ScoreMask& memory_mask);

}  // namespace posenc::inference
