#pragma once

#include "posenc/functional/positional_encoding.h"
#include "posenc/functional/token_embedding.h"
#include "posenc/sinusoid/axes.h"

namespace posenc::functional {

struct EmbedFuncOptions {
  TORCH_ARG(Scale, scale) = Scale::None;
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  TORCH_ARG(PositionalEncodingFuncOptions, position) = {};
  /// Probability with which an element of the sum is zeroed, in [0, 1); only while training.
  TORCH_ARG(double, dropout) = 0.0;
  TORCH_ARG(bool, training) = false;
  /// Of half-precision weights. Reference: rounded where ATen rounds, after the scale, the sum and
  /// the dropout. Exact: float32 throughout, from a float32 table, rounded once at the end.
  TORCH_ARG(Precision, precision) = Precision::Reference;
  /// The weight's gradient is sparse and coalesced, as nn.Embedding's `sparse`.
  TORCH_ARG(bool, sparse) = false;
};

/// Token ids to the input of a Transformer's first layer, in the order of the third notebook:
/// dropout(weight[ids] * scale + table[positions]).
///
/// ids: (B, L), (L, B) or (L), any integer type; weight: (V, D); table: (rows, D) or (1, rows, D)
/// ->  (..., D). On the CPU it is one pass over memory, with the bits of the four operations, their
/// dropout mask and generator state, at any number of threads; so is its backward. (A NaN is a NaN;
/// which one is no promise.) Elsewhere the four operations run.
/// The functional counterpart of InputEmbedding and TokenAndPositionEmbedding. Errors: those of
/// token_embedding() and positional_encoding(), and c10::ValueError for dropout outside [0, 1).
at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                 const EmbedFuncOptions& options = {});

/// The same into `out` (..., D), which is returned: no memory is allocated for it, and none of its
/// pages is touched for the first time. Throws as embed() does; c10::TypeError for an out of
/// another dtype or layout; c10::ValueError for one of another shape, on another device, that
/// shares memory with weight, table, ids or position_ids, whose own elements overlap, that is an
/// inference tensor outside InferenceMode, or where a gradient would be asked for.
const at::Tensor& embed_out(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
                            const at::Tensor& table, const EmbedFuncOptions& options = {});

}  // namespace posenc::functional
