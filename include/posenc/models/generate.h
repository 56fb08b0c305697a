#pragma once

#include <ATen/core/Generator.h>

#include <functional>
#include <optional>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/transformer.h"

namespace posenc POSENC_EXPORT {

/// Progress of generate().
struct GenerateProgress {
  int64_t step;            ///< number of tokens in each sequence so far
  int64_t max_new_tokens;  ///< maximum number of tokens
  int64_t finished;        ///< number of sources that are finished
  int64_t sources;         ///< number of sources
};

/// When beam search stops for a source. In any case it first finishes as many sequences as there
/// are beams. The values correspond to those of transformers' `early_stopping`.
enum class EarlyStopping {
  WhenFull,      ///< immediately after that: `True`
  WhenUnlikely,  ///< when the best live beam, scored at its present length, beats none: `False`
  Never,         ///< when no live beam can beat any of them by max_new_tokens: `"never"`
};

/// Options of generate().
struct GenerateOptions {
  /// The default options with the tokens that begin and end every target.
  GenerateOptions(int64_t bos_id, int64_t eos_id) : bos_id_(bos_id), eos_ids_({eos_id}) {}

  /// The token that begins every target.
  TORCH_ARG(int64_t, bos_id);
  /// Tokens that end a sequence; the one that ended it is kept as its last token.
  TORCH_ARG(std::vector<int64_t>, eos_ids);
  /// Tokens that are never generated. Their probability is not redistributed, unless `renormalize`
  /// is set.
  TORCH_ARG(std::vector<int64_t>, suppress_tokens) = {};
  /// Renormalises the probabilities of the remaining tokens to a sum of 1.
  TORCH_ARG(bool, renormalize) = false;
  /// The last token of a sequence that reaches max_new_tokens, whatever the model predicts. It
  /// counts with probability 1.
  TORCH_ARG(std::optional<int64_t>, forced_eos_id) = std::nullopt;
  /// Maximum number of tokens in a sequence, including the one that ends it.
  TORCH_ARG(int64_t, max_new_tokens) = 128;
  /// Number of sequences returned per source: the best of the beams, or independent samples; at
  /// most 65,536.
  TORCH_ARG(int64_t, num_return_sequences) = 1;

  /// Number of beams, at most 65,536; 1: greedy search.
  TORCH_ARG(int64_t, num_beams) = 1;
  /// Exponent of the length in a sequence's score, log probability / length ^ length_penalty; 0:
  /// sequences are compared by probability.
  TORCH_ARG(double, length_penalty) = 1.0;
  /// When beam search stops.
  TORCH_ARG(EarlyStopping, early_stopping) = EarlyStopping::Never;

  /// Draws each token from the model's distribution instead of choosing the most probable one.
  TORCH_ARG(bool, do_sample) = false;
  /// Divisor of the logits; above 0.
  TORCH_ARG(double, temperature) = 1.0;
  /// Draws only from the k most probable tokens; 0: from all.
  TORCH_ARG(int64_t, top_k) = 0;
  /// Draws only from the smallest set of tokens whose probabilities sum to p; 1: from all.
  TORCH_ARG(double, top_p) = 1.0;
  /// Random number generator; torch's default generator unless set.
  TORCH_ARG(std::optional<at::Generator>, generator) = std::nullopt;

  /// Called after each token. Return false to end the search with the sequences found so far. The
  /// search has its own copy of the options and keeps the model alive.
  TORCH_ARG(std::function<bool(const GenerateProgress&)>, progress) = nullptr;
};

/// A generated target.
struct Hypothesis {
  std::vector<int64_t> tokens;  ///< without bos_id, with the token of eos_ids that ended it, if any
  double score = 0.0;           ///< log probability / length ^ length_penalty
};

/// Generates targets for each source by greedy search, beam search or sampling.
///
/// src: (B, S) ids, padded if their lengths differ, with AttentionMask::padding(src, pad) as
/// src_mask  ->  num_return_sequences hypotheses for each of the B sources, best first. There may
/// be fewer, but at least one, if a beam search runs out of candidates in a small vocabulary or
/// with suppressed tokens.
///
/// The model has to be in eval mode. The source is encoded once; each step then processes one token
/// per sequence. Greedy and beam search produce the same tokens as transformers' `generate`, with
/// the same max_new_tokens.
///
/// ```cpp
/// posenc::Transformer model(posenc::TransformerOptions(100, 100).d_model(32).num_heads(4));
/// model->eval();
/// torch::Tensor src = torch::tensor({{5, 6, 7, 8}, {9, 5, 0, 0}});
/// auto found = posenc::generate(model, src, posenc::AttentionMask::padding(src, 0),
///                               posenc::GenerateOptions(/*bos=*/1, /*eos=*/2).max_new_tokens(8));
/// ```
///
/// Errors: c10::ValueError for contradictory options, num_beams below 1, max_new_tokens beyond the
/// model's max_len, tokens outside the vocabulary, an empty holder, a model in training mode, and a
/// source without any candidate token, because its logits are NaN or all tokens are suppressed.
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
