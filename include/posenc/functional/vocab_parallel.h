#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <optional>

#include "posenc/core/scale.h"
#include "posenc/export.h"
#include "posenc/functional/token_cross_entropy.h"
#include "posenc/parallel/group.h"
#include "posenc/parallel/vocab_shard.h"

/// @file
/// Token embedding, output layer and loss whose vocabulary is split by rows over the processes of a
/// group: each holds the rows [first, last) of VocabShard::of(V, rank, ranks). All functions are
/// collectives in forward and backward: every process calls them, and backward(), in the same
/// order. With one process they are token_embedding(), linear() and token_cross_entropy().
///
/// With RankTokens::Own, each call also exchanges the numbers of tokens. If one process's arguments
/// are invalid it throws its own error, and the others throw GroupError (PeerFailed); no data are
/// sent. With RankTokens::Same, all processes have the same arguments and throw the same error.
///
/// Every process must compute the gradients of the same tensors. Ids are compared with the shard on
/// the host, so that on a GPU each call waits for the device.
///
/// Source: Shoeybi et al. 2019, "Megatron-LM"; here the loss takes one exchange of 3 floats per
/// token.

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of vocab_parallel_embedding().
struct VocabParallelEmbeddingFuncOptions {
  /// Factor of the vectors.
  TORCH_ARG(Scale, scale) = Scale::None;
  /// A row of the whole table that gets no gradient.
  TORCH_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// Whether all processes pass the same ids.
  TORCH_ARG(RankTokens, tokens) = RankTokens::Same;
  /// Makes the gradient of the shard sparse and coalesced; nn.Embedding's `sparse`.
  TORCH_ARG(bool, sparse) = false;
};

/// token_embedding() for a table of which each process holds the rows of `shard`.
///
/// ids: integers in [0, V), with Own of any length on each process; weight: (last - first, D)  ->
/// (..., D), equal to that of the whole table.
///
/// Wire: D floats per token forward (an allreduce), none backward; with Own, the id and D floats
/// per token forward (all_gather, reduce_scatter) and D backward (all_gather).
///
/// Errors: those of token_embedding(); c10::ValueError for a weight that does not have the shard's
/// rows and a shard that is not the process's; GroupError.
at::Tensor vocab_parallel_embedding(const at::Tensor& ids, const at::Tensor& weight,
                                    const VocabShard& shard, const RankGroup& group,
                                    const VocabParallelEmbeddingFuncOptions& options = {});

/// This process's columns of the logits: x weight^T + bias.
///
/// x: (..., D), weight: (last - first, D), bias: (last - first) or undefined  ->  (..., last -
/// first). With Own, x (N_r, D) of every process is gathered first: the logits are those of all N
/// tokens, (N, last - first), in the order of the ranks.
///
/// Wire: D floats per token backward (an allreduce); with Own, D forward (all_gather) and D
/// backward (reduce_scatter).
///
/// Errors: c10::ValueError for shapes that do not fit; c10::TypeError for an x that is not real;
/// GroupError.
at::Tensor vocab_parallel_output(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const RankGroup& group,
                                 RankTokens tokens = RankTokens::Same);

/// token_cross_entropy() of logits that are split over the group by columns: the mean over all
/// targets that are not ignored, of all processes; NaN if all are ignored. It has the same bits on
/// every process. Half types are computed in float32 and rounded at the end.
///
/// logits: (..., last - first), targets: (...), int64, the same on every process; with Own, targets
/// (N_r) are this process's own and the logits are those that vocab_parallel_output() returned for
/// them.
///
/// Wire: 3 floats per token in one all_gather (maximum, sum of exponentials, own part of the
/// target's logit and of the smoothing), with Own the target as well; none backward.
///
/// Errors: those of token_cross_entropy(); c10::ValueError for logits that do not have the shard's
/// columns and a shard that is not the process's; GroupError. The gradient cannot be differentiated
/// again (c10::ValueError).
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                                        const VocabShard& shard, const RankGroup& group,
                                        const TokenCrossEntropyFuncOptions& options = {},
                                        RankTokens tokens = RankTokens::Same);

}  // namespace functional
}  // namespace posenc
