#pragma once

#include <vector>

#include "functional/topk.h"
#include "posenc/models/generate.h"

namespace posenc {

using Hypotheses = std::vector<std::vector<Hypothesis>>;  // one list per source

/// A model that decodes token by token, one row per target. The rows of one source are adjacent.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Appends the tokens (R, 1) to the rows and returns the logits (R, V) of the next tokens, which
  /// the caller may overwrite.
  virtual torch::Tensor step(const torch::Tensor& tokens) = 0;
  /// Replaces row r with row `rows`[r], a row of the same source; rows: (R) int64, on the CPU.
  /// Fewer rows than before means that some sources have been removed.
  virtual void select(const torch::Tensor& rows) = 0;
  /// Throws c10::Error if the model has changed since the search began, so that no result is made
  /// of two models. Called after each callback and at the end.
  virtual void check_unchanged() const = 0;
};

/// The distribution of the next token: log probability = logits - sum.
struct NextToken {
  torch::Tensor logits;       ///< (R, V); -inf for disallowed tokens
  functional::LogSumExp sum;  ///< over all tokens, including those
};

/// A search for `rows_per_source` targets for each of `sources`.
struct Search {
  StepModel& decoder;
  GenerateOptions options;  ///< a copy: a callback may change the caller's
  int64_t sources;
  int64_t rows_per_source;
  torch::Tensor tokens;  ///< (R, 1), input of the next step; R counts the remaining rows

  /// The distribution of the tokens that follow `tokens`, the `length`-th token of each row.
  NextToken step(int64_t length);
  /// Makes each of the decoder's rows r continue row `rows`[r], with the token `next`[r].
  void continue_with(const std::vector<int64_t>& rows, const std::vector<int64_t>& next);
  bool stops(int64_t token) const;
  double score(double log_probability, int64_t length) const;
  /// `score` is that of the best candidate for the `length`-th token of a source. Throws
  /// c10::ValueError if there is none: the logits are NaN, or all are -inf.
  static void check_choice(float score, int64_t length, int64_t source);
  /// Calls the caller's progress function and checks the model after it. Returns false if the
  /// search should stop.
  bool go_on(int64_t step, int64_t finished) const;
};

/// Throws c10::ValueError unless `src` is (B, S).
void check_source(const torch::Tensor& src);
/// Throws the errors that generate() documents for its options and the model's sizes.
void check_generation(const GenerateOptions& options, int64_t vocab, int64_t max_len);
/// Number of rows per source that the options require.
int64_t rows_per_source(const GenerateOptions& options);
/// Runs the search that the options select; the decoder already has a row for each target.
Hypotheses search(StepModel& decoder, const GenerateOptions& options, int64_t sources,
                  torch::Device device);

/// Beam search.
Hypotheses beam_search(Search& search);

/// Greedy search or sampling, with one row for each returned sequence.
Hypotheses row_search(Search& search);

/// Samples one id per row of log probabilities (R, V) according to the options: (R).
torch::Tensor draw(const torch::Tensor& log_probabilities, const GenerateOptions& options);

}  // namespace posenc
