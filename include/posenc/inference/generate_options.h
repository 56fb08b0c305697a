#pragma once

// posenc-budget: the options of one function

#include <ATen/core/Generator.h>
#include <torch/arg.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// Progress of generate().
struct GenerateProgress {
  /// Number of tokens so far: after each prefix where a model reads prefixes at once, as frozen
  /// ones do unless they return attention, otherwise after the longest.
  int64_t step;
  int64_t max_new_tokens;  ///< maximum number of tokens
  int64_t finished;        ///< number of sources that are finished
  int64_t sources;         ///< number of sources
};

/// A token that generate() has just chosen.
struct GeneratedToken {
  int64_t source;          ///< which source
  int64_t sequence;        ///< the index among the source's hypotheses that generate() returns
  int64_t token;           ///< the id
  double log_probability;  ///< given the source and the tokens before it
  bool is_last = false;    ///< whether its sequence ends with it, unless a callback ends it earlier
};

/// When beam search stops for a source. In any case it first finishes as many sequences as there
/// are beams. The values correspond to those of transformers' `early_stopping`.
enum class EarlyStopping {
  WhenFull,      ///< immediately after that: `True`
  WhenUnlikely,  ///< when the best live beam, scored at its present length, beats none: `False`
  Never,         ///< when no live beam can beat any of them by max_new_tokens: `"never"`
};

/// How a sequence's score depends on its length n.
enum class LengthPenalty {
  Power,  ///< log probability / n ^ length_penalty, as in transformers
  Gnmt,   ///< log probability / ((5 + n) / 6) ^ length_penalty (Wu et al. 2016, "Google's Neural
          ///< Machine Translation System", equation 14)
};

/// A sequence of tokens and what is added to the score of its last one after the others.
using SequenceBias = std::pair<std::vector<int64_t>, double>;

/// After `start` tokens of a sequence, |x| (factor^n - 1) is added to the score x of a token that
/// ends it, n the number of tokens since then.
struct LengthDecay {
  int64_t start;  ///< in tokens, without those of the prefix
  double factor;  ///< above 1: ends become more likely
};

/// The rules of Whisper's timestamps, transformers' WhisperTimeStampLogitsProcessor. The timestamps
/// are the ids above no_timestamps_id, which is never generated; n counts tokens after the prefix.
///
/// - They come in pairs: after two, or one as the first token, there is none; after one that
///   follows text there is a timestamp or an end, and no id below eos_id.
/// - They do not decrease, and one that opens a pair is later than the one before it.
/// - The first token is a timestamp, at most max_initial_timestamp_index later than the first one.
/// - Where all timestamps together are more probable than the most probable other token, one of
///   them is generated.
struct TimestampRules {
  int64_t no_timestamps_id;  ///< the id before that of the first timestamp
  int64_t eos_id;  ///< ids below it are text; transformers: the first of eos_token_id, or if that
                   ///< is 0 or none bos_token_id
  std::optional<int64_t> max_initial_timestamp_index = std::nullopt;  ///< none: any
};

/// Options of generate(). Names and meaning are those of transformers 5.23, except where a comment
/// says otherwise; "columns" are a target's tokens with those that began it.
///
/// The settings that change scores apply in the order of this list, to the logits of
/// greedy search and sampling, and to the log probabilities of beam search. Each row has its own,
/// so a row's result does not depend on its batch, but for the two that read the source's padding.
struct GenerateOptions {
  /// The default options with the tokens that begin and end every target.
  GenerateOptions(int64_t bos_id, int64_t eos_id) : bos_id_(bos_id), eos_ids_({eos_id}) {}

  /// The error of a search with these options: that of a folder's settings which generate() does
  /// not have, or empty. load_seq2seq() sets it, so that the weights of such a folder can be
  /// loaded.
  TORCH_ARG(std::string, unsupported) = "";

  /// The token that begins every target (decoder_start_token_id).
  TORCH_ARG(int64_t, bos_id);
  /// Tokens that end a sequence; the one that ended it is kept as its last token.
  TORCH_ARG(std::vector<int64_t>, eos_ids);
  /// The tokens that begin each target instead of bos_id alone: one list per source, or one for
  /// all. They count for the settings that look at columns, but not for scores.
  TORCH_ARG(std::vector<std::vector<int64_t>>, prefixes) = {};
  /// Columns before the prefix of each source that nothing attends to, but that the positions of
  /// generated tokens count in a model that numbers tokens by their ids (PositionIds::FromIds), as
  /// those that decoder_attention_mask hides in M2M-100; empty: none.
  TORCH_ARG(std::vector<int64_t>, hidden_columns) = {};

  /// Maximum number of tokens in a sequence, including the one that ends it; without a value,
  /// max_length counts.
  TORCH_ARG(std::optional<int64_t>, max_new_tokens) = 128;
  /// Maximum number of columns, those of the longest prefix included, where max_new_tokens has no
  /// value. Without either, 20 new tokens, or fewer if the model has fewer positions.
  TORCH_ARG(std::optional<int64_t>, max_length) = std::nullopt;
  /// Minimum number of tokens before one that ends the sequence; if given, min_length does not
  /// count, even if it is 0.
  TORCH_ARG(std::optional<int64_t>, min_new_tokens) = std::nullopt;
  /// Minimum number of columns before a token that ends the sequence.
  TORCH_ARG(int64_t, min_length) = 0;

  /// Added to the score of a sequence's last token where the columns end with its others; sums for
  /// several sequences, but the last of equal ones counts.
  TORCH_ARG(std::vector<SequenceBias>, sequence_bias) = {};
  /// Above 1, raises the score of each token in the source's row, padding included: x < 0 ? x / p :
  /// x * p.
  TORCH_ARG(double, encoder_repetition_penalty) = 1.0;
  /// Above 1, lowers the score of each token in the columns: x < 0 ? x * p : x / p.
  TORCH_ARG(double, repetition_penalty) = 1.0;
  /// Never generates a token that would repeat a sequence of that many tokens; 0: any.
  TORCH_ARG(int64_t, no_repeat_ngram_size) = 0;
  /// Never generates a token that would complete a sequence of that many tokens of the source's
  /// row, padding included; 0: any.
  TORCH_ARG(int64_t, encoder_no_repeat_ngram_size) = 0;
  /// Sequences that are never generated; one that is a single token of eos_ids is ignored.
  TORCH_ARG(std::vector<std::vector<int64_t>>, bad_words_ids) = {};
  /// The first token, whatever the model predicts, of a target that begins with one token. It
  /// counts with probability 1.
  TORCH_ARG(std::optional<int64_t>, forced_bos_id) = std::nullopt;
  /// The same with one token for each source, such as the codes of their target languages; empty:
  /// forced_bos_id for all.
  TORCH_ARG(std::vector<int64_t>, forced_bos_ids) = {};
  /// The last token of a sequence that reaches the maximum, whatever the model predicts, one of
  /// these. It counts with probability 1.
  TORCH_ARG(std::vector<int64_t>, forced_eos_ids) = {};
  /// Replaces scores that are NaN by 0 and infinite ones by the largest finite ones.
  TORCH_ARG(bool, remove_invalid_values) = false;
  /// Raises or lowers the scores of eos_ids exponentially.
  TORCH_ARG(std::optional<LengthDecay>, exponential_decay_length_penalty) = std::nullopt;
  /// Tokens that are never generated; those outside the vocabulary are ignored.
  TORCH_ARG(std::vector<int64_t>, suppress_tokens) = {};
  /// Tokens that are not generated first; after a forced first token, not second.
  TORCH_ARG(std::vector<int64_t>, begin_suppress_tokens) = {};
  /// The rules of Whisper's timestamps; none unless set.
  TORCH_ARG(std::optional<TimestampRules>, timestamp_rules) = std::nullopt;

  /// Draws each token from the model's distribution instead of choosing the most probable one.
  TORCH_ARG(bool, do_sample) = false;
  /// Divisor of the logits; above 0.
  TORCH_ARG(double, temperature) = 1.0;
  /// Draws only from the most probable tokens, of the best 100, whose terms of the entropy sum to
  /// at most top_h of it (Potraka et al. 2025, "Top-H decoding"); unset: from all.
  TORCH_ARG(std::optional<double>, top_h) = std::nullopt;
  /// Draws only from the k most probable tokens; 0: from all.
  TORCH_ARG(int64_t, top_k) = 0;
  /// Draws only from the smallest set of tokens whose probabilities sum to p; 1: from all.
  TORCH_ARG(double, top_p) = 1.0;
  /// Draws only from tokens with at least this share of the largest probability; unset: from all.
  TORCH_ARG(std::optional<double>, min_p) = std::nullopt;
  /// Draws only from the tokens whose information is closest to the entropy, with this probability
  /// together (Meister et al. 2022, "Locally typical sampling"); 1: from all.
  TORCH_ARG(double, typical_p) = 1.0;
  /// Draws only from tokens with at least this probability; 0: from all.
  TORCH_ARG(double, epsilon_cutoff) = 0.0;
  /// The same with min(e, sqrt(e) exp(-entropy)) (Hewitt et al. 2022, "Truncation sampling"); 0:
  /// from all.
  TORCH_ARG(double, eta_cutoff) = 0.0;
  /// Renormalises the probabilities after all of these to a sum of 1; without it, the probability
  /// of tokens that are excluded is lost.
  TORCH_ARG(bool, renormalize) = false;
  /// Random number generator; torch's default generator unless set. The rows of a batch draw from
  /// it in turn.
  TORCH_ARG(std::optional<at::Generator>, generator) = std::nullopt;
  /// One for each source in its place, so that what is drawn for a source does not depend on the
  /// others; empty: generator.
  TORCH_ARG(std::vector<at::Generator>, generators) = {};

  /// Number of sequences returned per source: the best of the beams, best first, or independent
  /// samples, in the order drawn; at most 65,536.
  TORCH_ARG(int64_t, num_return_sequences) = 1;
  /// Number of beams, at most 65,536; 1: greedy search.
  TORCH_ARG(int64_t, num_beams) = 1;
  /// Returns num_return_sequences targets whose first tokens after the prefix differ: the most
  /// probable ones, in that order, each continued by greedy search. Needs num_beams 1 and no
  /// do_sample.
  TORCH_ARG(bool, return_alternatives) = false;
  /// Exponent of the length in a sequence's score, see length_penalty_kind; 0: sequences are
  /// compared by probability.
  TORCH_ARG(double, length_penalty) = 1.0;
  /// The formula of the score.
  TORCH_ARG(LengthPenalty, length_penalty_kind) = LengthPenalty::Power;
  /// Added to a sequence's score, times the sum over the source of log(min(c, 1)), where c is what
  /// the target's tokens attend to a position of the source together, their weights in
  /// Hypothesis::attention and those of the prefix (Wu et al. 2016, equation 14; CTranslate2's
  /// option). A position without any, such as padding, does not count. Beams are compared without
  /// it; 0: off; at most 1e30.
  TORCH_ARG(double, coverage_penalty) = 0.0;
  /// Returns Hypothesis::attention.
  TORCH_ARG(bool, return_attention) = false;
  /// Returns Hypothesis::log_probability, which costs a pass over the scores of each step.
  TORCH_ARG(bool, return_log_probability) = false;
  /// When beam search stops.
  TORCH_ARG(EarlyStopping, early_stopping) = EarlyStopping::Never;

  /// Ends a sequence: called with its columns after each token, for stop strings and the like. The
  /// token that completes one is kept.
  TORCH_ARG(std::function<bool(const std::vector<int64_t>& columns)>, stopping_criteria) = nullptr;
  /// Called with each token as soon as it is chosen, without beams. Return false to end its
  /// sequence with it.
  TORCH_ARG(std::function<bool(const GeneratedToken&)>, on_token) = nullptr;
  /// Called after each step. Return false to end the search with the sequences found so far. The
  /// search has its own copy of the options and keeps the model alive.
  TORCH_ARG(std::function<bool(const GenerateProgress&)>, progress) = nullptr;
};

}  // namespace posenc
