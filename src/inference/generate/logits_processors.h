#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "inference/generate/topk.h"
#include "posenc/inference/generate_options.h"

namespace posenc {

/// The distribution of the next token: log probability = logits - sum.
struct NextToken {
  torch::Tensor logits;       ///< (R, V); -inf for disallowed tokens
  functional::LogSumExp sum;  ///< over all tokens, including those
};

/// A target that is being generated.
struct TargetRow {
  int64_t source;
  const std::vector<int64_t>* columns;  ///< its tokens so far; null: it needs no next token
};

/// Lengths that the options mean for given prefixes, by source, in tokens after its prefix.
struct TargetLengths {
  std::vector<int64_t> most, least;
  std::vector<int64_t> prefixes;  ///< columns of each source's prefix
};

/// The settings of GenerateOptions that change the scores of next tokens, except for those that
/// only sampling has: transformers' logits processors. Touches single tokens of a row where it can.
class LogitsProcessors {
 public:
  /// src: (B, S) ids.
  LogitsProcessors(const GenerateOptions& options, TargetLengths lengths, const torch::Tensor& src,
                   int64_t vocab);

  /// Changes the rows' scores: `logits` for greedy search and sampling, log probabilities for beam
  /// search. Row r belongs to `rows`[r].
  void apply(NextToken& next, const std::vector<TargetRow>& rows) const;

 private:
  class Scores;
  struct Bias {
    std::vector<int64_t> tokens;
    float value;
  };
  using Tokens = std::vector<int64_t>;

  int64_t generated(const TargetRow& row) const;
  bool begins_with_one(int64_t source) const;
  const Tokens* forced(const TargetRow& row) const;
  bool begins(const TargetRow& row) const;
  bool only_bans(const std::vector<TargetRow>& rows) const;
  void process(Scores& scores, const TargetRow& row) const;
  void add_biases(Scores& scores, const Tokens& columns) const;
  void ban_ngrams(Scores& scores, const TargetRow& row) const;
  void decay_ends(Scores& scores, int64_t length) const;
  void follow_timestamps(Scores& scores, const TargetRow& row) const;

  const GenerateOptions options_;
  const TargetLengths lengths_;
  const int64_t vocab_;
  std::vector<Tokens> src_;                // rows of the source, if a setting reads them
  std::vector<Tokens> src_tokens_;         // the same, each token once
  std::map<int64_t, float> token_biases_;  // of single tokens
  std::vector<Bias> biases_;               // of several
  Tokens banned_, suppressed_, first_suppressed_;
  std::vector<Tokens> forced_first_;  // one token per source, or empty
  std::vector<Tokens> banned_sequences_;
  at::Tensor always_banned_;  // ids
};

}  // namespace posenc
