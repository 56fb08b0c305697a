#pragma once

#include <ATen/core/Generator.h>

#include <functional>
#include <optional>
#include <vector>

#include "posenc/models/transformer.h"

namespace posenc {

/// Progress of generate().
struct GenerateProgress {
  int64_t step;        ///< tokens that each sequence has so far
  int64_t max_length;  ///< the most it will have
  int64_t finished;    ///< sources that are done
  int64_t sources;
};

/// When beam search stops for a source. None of them stops it before as many sequences are finished
/// as there are beams; each is one value of transformers' `early_stopping`.
enum class EarlyStopping {
  WhenFull,      ///< then at once: `True`
  WhenUnlikely,  ///< once the best live beam, scored as long as it is now, beats none: `False`
  Never,         ///< once no live beam can beat one of them by max_length: `"never"`
};

struct GenerateOptions {
  /// The token that every target begins with, and the one that ends it.
  GenerateOptions(int64_t begin, int64_t end) : begin_(begin), stop_({end}) {}

  TORCH_ARG(int64_t, begin);
  /// Each of these ends a sequence and is its last token.
  TORCH_ARG(std::vector<int64_t>, stop);
  /// Tokens that are never written; their probability is not redistributed, unless renormalize is
  /// set.
  TORCH_ARG(std::vector<int64_t>, banned) = {};
  /// The probabilities of the tokens that may be written add up to 1.
  TORCH_ARG(bool, renormalize) = false;
  /// The last token of a sequence that has reached max_length, whatever the model says; it counts
  /// with probability 1.
  TORCH_ARG(std::optional<int64_t>, forced_end) = std::nullopt;
  /// Most tokens of a sequence, the stop token included.
  TORCH_ARG(int64_t, max_length) = 128;
  /// Sequences that are returned for a source: the best of the beams, or that many samples.
  TORCH_ARG(int64_t, n_best) = 1;

  /// Width of the beam search; 1 is greedy.
  TORCH_ARG(int64_t, beams) = 1;
  /// Sequences are compared by log probability / length ^ length_penalty; 0: by probability.
  TORCH_ARG(double, length_penalty) = 1.0;
  TORCH_ARG(EarlyStopping, early_stopping) = EarlyStopping::Never;

  /// Draw each token from the model's distribution instead of taking the best.
  TORCH_ARG(bool, sample) = false;
  /// Logits are divided by it; above 0.
  TORCH_ARG(double, temperature) = 1.0;
  /// Draw among the k most probable tokens only; 0: all.
  TORCH_ARG(int64_t, top_k) = 0;
  /// Draw among the fewest tokens whose probabilities reach p; 1: all.
  TORCH_ARG(double, top_p) = 1.0;
  /// Source of the random numbers; torch's default generator unless set.
  TORCH_ARG(std::optional<at::Generator>, generator) = std::nullopt;

  /// Called after each token; return false to end the search with what has been found.
  TORCH_ARG(std::function<bool(const GenerateProgress&)>, progress) = nullptr;
};

/// A target that the model wrote.
struct Hypothesis {
  std::vector<int64_t> tokens;  ///< without `begin`, with the stop token that ended it, if any did
  double score = 0.0;           ///< log probability by the model / length ^ length_penalty
};

/// Targets for each source: greedy, by beam search, or sampled.
///
/// src: (B, S) ids; sources of several lengths are padded, and src_mask says where:
/// AttentionMask::padding(src, pad)  ->  n_best hypotheses for each of the B, best first; fewer
/// where a beam search can write no more, of a small vocabulary or under bans, and never none.
/// The model is in eval mode. Encodes once, then each step projects one token a sequence.
/// Greedy and beam search find what transformers' `generate` finds, token for token; its max_length
/// counts the begin token too, so it is one more than this one.
/// Errors: c10::ValueError for options that contradict each other, beams below 1, a max_length past
/// the model's max_len, a model in training mode, and where a source has no token to write: logits
/// that are not numbers, or all tokens banned.
std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options);

}  // namespace posenc
