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
/// collectives in forward and backward: every process calls them in the same order.
///
/// Source: Shoeybi et al. 2019, "Megatron-LM"; here the loss takes one exchange of 3 floats a token.

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
};

/// token_embedding() of a table of which each process holds the rows of `shard`.
///
/// ids: integers in [0, V), with Own of any length on each process; weight: (last - first, D)  ->
/// (..., D), equal to that of the whole table.
///
/// Wire: D floats a token forward (an allreduce), none backward; with Own, D a token (reduce_scatter)
/// forward and D backward (all_gather).
///
/// Errors: those of token_embedding(), on every process, before anything is sent; c10::ValueError
/// for a weight that does not have the shard's rows; GroupError.
at::Tensor vocab_parallel_embedding(const at::Tensor& ids, const at::Tensor& weight,
                                    const VocabShard& shard, const RankGroup& group,
                                    const VocabParallelEmbeddingFuncOptions& options = {});

/// This process's columns of the logits: x weight^T + bias.
///
/// x: (..., D), weight: (last - first, D), bias: (last - first) or undefined  ->  (..., last - first).
/// With Own, x (N_r, D) of every process is gathered first: the logits are those of all N tokens,
/// (N, last - first), in the order of the ranks.
///
/// Wire: D floats a token backward (an allreduce); with Own, D forward (all_gather) and D backward
/// (reduce_scatter).
at::Tensor vocab_parallel_output(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const RankGroup& group,
                                 RankTokens tokens = RankTokens::Same);

/// token_cross_entropy() of logits that are split over the group by columns: the mean over all
/// targets that are not ignored, the same bits on every process. Half types are computed in float32.
///
/// logits: (..., last - first), targets: (...), int64, the same on every process; with Own, targets
/// (N_r) are this process's own and the logits are those that vocab_parallel_output() returned for
/// them.
///
/// Wire: 3 floats a token in one all_gather (maximum, sum of exponentials, own part of the target's
/// logit and of the smoothing); none backward.
at::Tensor vocab_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& targets,
                                        const VocabShard& shard, const RankGroup& group,
                                        const TokenCrossEntropyFuncOptions& options = {},
                                        RankTokens tokens = RankTokens::Same);

}  // namespace functional
}  // namespace posenc
