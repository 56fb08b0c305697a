#pragma once

#include <cstdint>
#include <vector>

#include "posenc/export.h"
#include "posenc/transformer/transformer.h"

namespace posenc POSENC_EXPORT {

class FrozenTransformer;

/// The log probability of each token of given targets, by teacher forcing: all tokens of a target
/// are decoded at once.
///
/// src: (B, S) ids, with AttentionMask::padding(src, pad) as src_mask, or (B, M, W) features of a
/// model with TransformerOptions::src_features; targets: B lists of ids, each with the token that
/// begins it, such as GenerateOptions::bos_id, first  ->  B lists, one value shorter: that of token
/// i + 1 given the source and tokens 0 .. i.
///
/// The sum for the tokens of a Hypothesis, divided as GenerateOptions::length_penalty says, is its
/// score where no setting changes scores. A call holds the logits of B targets of the longest
/// length at once, so callers bound its memory by the batch.
///
/// ```cpp
/// posenc::Transformer model(posenc::TransformerOptions(100, 100).d_model(32).num_heads(4));
/// model->eval();
/// torch::Tensor source = torch::tensor({{5, 6, 7, 8}});
/// auto values = posenc::score(*model, source, {}, {{1, 20, 30, 2}});  // of 20, 30 and 2
/// TORCH_CHECK(values[0].size() == 3);
/// ```
///
/// Errors: c10::ValueError for a model of which any module is in training mode, src of other axes,
/// another number of targets, an empty target, ids outside the vocabulary, and targets longer than
/// max_len.
std::vector<std::vector<double>> score(TransformerImpl& model, const torch::Tensor& src,
                                       const AttentionMask& src_mask,
                                       const std::vector<std::vector<int64_t>>& targets);
/// score() of a frozen model.
std::vector<std::vector<double>> score(const FrozenTransformer& model, const torch::Tensor& src,
                                       const AttentionMask& src_mask,
                                       const std::vector<std::vector<int64_t>>& targets);

/// What score_with_attention() finds of a target.
struct ScoredTarget {
  std::vector<double> log_probabilities;  ///< as score() gives them
  /// What each of these tokens attends to in the source (tokens, S), as Hypothesis::attention.
  torch::Tensor attention;
};

/// score() with the attention to the source, such as for the alignment of a translation with its
/// source.
std::vector<ScoredTarget> score_with_attention(TransformerImpl& model, const torch::Tensor& src,
                                               const AttentionMask& src_mask,
                                               const std::vector<std::vector<int64_t>>& targets);
/// score_with_attention() of a frozen model.
std::vector<ScoredTarget> score_with_attention(const FrozenTransformer& model,
                                               const torch::Tensor& src,
                                               const AttentionMask& src_mask,
                                               const std::vector<std::vector<int64_t>>& targets);

}  // namespace posenc
