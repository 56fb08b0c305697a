#pragma once

#include "posenc/export.h"
#include "posenc/positions/functional/positional_encoding.h"
#include "posenc/positions/functional/token_embedding.h"
#include "posenc/positions/sinusoid/axes.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of embed().
struct EmbedFuncOptions {
  /// Factor of the token vectors.
  TORCH_ARG(Scale, scale) = Scale::None;
  /// The row of `weight` that gets no gradient; a negative index counts from the end.
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// Offset or explicit positions, and the order of axes.
  TORCH_ARG(PositionalEncodingFuncOptions, position) = {};
  /// Probability of zeroing an element of the sum, in [0, 1); applies only in training.
  TORCH_ARG(double, dropout) = 0.0;
  /// Whether dropout is applied.
  TORCH_ARG(bool, training) = false;
  /// Rounding with half-precision weights. Reference: after the scale, the sum and the dropout, as
  /// ATen rounds. Exact: computed in float32 from a float32 table and rounded once at the end.
  TORCH_ARG(Precision, precision) = Precision::Reference;
  /// Makes the gradient of `weight` sparse and coalesced; nn.Embedding's `sparse`.
  TORCH_ARG(bool, sparse) = false;
};

/// The input of a Transformer's first layer from token ids:
/// dropout(weight[ids] * scale + table[positions]).
///
/// ids: (B, L), (L, B) or (L), any integer type; weight: (V, D); table: (rows, D) or (1, rows, D)
/// ->  (..., D).
///
/// On the CPU, forward and backward are a single pass over memory each, bit-identical with any
/// number of threads to the four separate operations, including the dropout mask and the generator
/// state (except which NaN is produced). In all other cases the four operations are run. The
/// functional counterpart of InputEmbedding and TokenAndPositionEmbedding.
///
/// Errors: those of token_embedding() and positional_encoding(); c10::ValueError for a dropout
/// outside [0, 1).
at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                 const EmbedFuncOptions& options = {});

/// embed() into an existing tensor `out` (..., D), which is returned. Reusing memory avoids both
/// the allocation and the page faults of new memory.
///
/// Errors: those of embed(); c10::TypeError if `out` has the wrong dtype or layout;
/// c10::ValueError if it has the wrong shape or device, shares memory with weight, table, ids or
/// position_ids, has overlapping elements, is an inference tensor used outside InferenceMode, or if
/// a gradient would be recorded.
const at::Tensor& embed_out(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
                            const at::Tensor& table, const EmbedFuncOptions& options = {});

}  // namespace functional
}  // namespace posenc
