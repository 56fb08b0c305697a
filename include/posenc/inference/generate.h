#pragma once

#include <vector>

#include "posenc/export.h"
#include "posenc/inference/generate_options.h"
#include "posenc/transformer/transformer.h"

namespace posenc POSENC_EXPORT {

/// A generated target.
struct Hypothesis {
  std::vector<int64_t> tokens;  ///< without bos_id, with the token of eos_ids that ended it, if any
  /// Log probability by length, see GenerateOptions::length_penalty and coverage_penalty.
  double score = 0.0;
  /// What each token attends to in the source (tokens, S), with GenerateOptions::return_attention
  /// (S is W / 2 where the source is features (B, M, W)):
  /// the weights of the attention to the memory in the last layer when it is predicted, averaged
  /// over the heads, float32 on the CPU. Padding has 0.
  torch::Tensor attention = {};
  /// With GenerateOptions::return_log_probability the sum over the tokens, the end included, of the
  /// log probability of each among those that the settings left, at temperature 1: the log_softmax
  /// of transformers' `scores`, times the temperature. Divided by the number of tokens it is the
  /// mean that Whisper compares with its logprob_threshold.
  double log_probability = 0.0;
};

/// Generates targets for each source by greedy search, beam search or sampling.
///
/// src: (B, S) ids, padded if their lengths differ, with AttentionMask::padding(src, pad) as
/// src_mask, or (B, M, W) features of sound for a model with TransformerOptions::src_features  ->
/// num_return_sequences hypotheses for each of the B sources: those of beams best first, samples in
/// the order drawn, as in transformers. There may be fewer, but at least one, if a beam search runs
/// out of candidates in a small vocabulary or with suppressed tokens.
///
/// The model and all modules in it have to be in eval mode; no mode is changed. The source is
/// encoded once; each step then processes one token per sequence. Greedy and beam search produce
/// the same tokens as transformers' `generate`, with the same max_new_tokens.
///
/// ```cpp
/// posenc::Transformer model(posenc::TransformerOptions(100, 100).d_model(32).num_heads(4));
/// model->eval();
/// torch::Tensor src = torch::tensor({{5, 6, 7, 8}, {9, 5, 0, 0}});
/// auto found = posenc::generate(model, src, posenc::AttentionMask::padding(src, 0),
///                               posenc::GenerateOptions(/*bos=*/1, /*eos=*/2).max_new_tokens(8));
/// ```
///
/// Errors: c10::ValueError for contradictory options, those that read ids where the source is
/// features (encoder_repetition_penalty, encoder_no_repeat_ngram_size), src of other axes,
/// num_beams below 1, max_new_tokens beyond the model's max_len, tokens outside the vocabulary, an
/// empty holder, a module in training mode, and a source without any candidate token, because its
/// logits are NaN or all tokens are suppressed.
std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options);
/// generate() for the model of a holder.
std::vector<std::vector<Hypothesis>> generate(const Transformer& model, const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options);
/// generate() for sources without padding.
std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const torch::Tensor& src,
                                              const GenerateOptions& options);
/// generate() for the model of a holder and sources without padding.
std::vector<std::vector<Hypothesis>> generate(const Transformer& model, const torch::Tensor& src,
                                              const GenerateOptions& options);

}  // namespace posenc
