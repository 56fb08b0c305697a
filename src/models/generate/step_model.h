#pragma once

#include <vector>

#include "functional/topk.h"
#include "posenc/models/generate.h"

namespace posenc {

using Hypotheses = std::vector<std::vector<Hypothesis>>;  // one list a source

/// A model that writes targets token by token, a row each; rows of one source stand together.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Logits (R, V), which may be overwritten, of what follows the tokens (R, 1), which come after
  /// those of the steps before.
  virtual torch::Tensor step(const torch::Tensor& tokens) = 0;
  /// Row r becomes what row `rows`[r] was, a row of the same source; rows: (R) int64, on the CPU.
  /// Where there are fewer than before, the rows of some sources have left.
  virtual void select(const torch::Tensor& rows) = 0;
};

/// What follows some tokens: log probability = logits - sum.
struct NextToken {
  torch::Tensor logits;       ///< (R, V); -inf for what may not be written
  functional::LogSumExp sum;  ///< over all tokens, those included
};

/// A search over `rows_per_source` targets for each of `sources`.
struct Search {
  StepModel& decoder;
  const GenerateOptions& options;
  int64_t sources;
  int64_t rows_per_source;
  torch::Tensor tokens;  ///< (R, 1), what the next step takes; R rows have not left yet

  /// What follows `tokens`, the `length`-th token of each.
  NextToken step(int64_t length);
  /// What each of the decoder's rows becomes, and the token that it writes next.
  void continue_with(const std::vector<int64_t>& rows, const std::vector<int64_t>& next);
  bool stops(int64_t token) const;
  double score(double log_probability, int64_t length) const;
  /// `score`: of the best token that may follow, as the `length`-th one of a source. Throws
  /// c10::ValueError where there is none: the logits are not numbers, or all are -inf.
  static void check_choice(float score, int64_t length, int64_t source);
  /// Calls the caller's progress; false ends the search.
  bool go_on(int64_t step, int64_t finished) const;
};

/// Errors that need no model but its sizes: what generate() says of its options.
void check_generation(const GenerateOptions& options, int64_t vocab, int64_t max_len);
/// Rows that the options want for a source.
int64_t rows_per_source(const GenerateOptions& options);
/// Runs the search that the options name; the decoder has a row for each target already.
Hypotheses search(StepModel& decoder, const GenerateOptions& options, int64_t sources,
                  torch::Device device);

/// The best beams.
Hypotheses beam_search(Search& search);

/// The best token of each row, or a drawn one; one row a sequence that is returned.
Hypotheses row_search(Search& search);

/// One id for each row of log probabilities (R, V), drawn as the options say: (R).
torch::Tensor draw(const torch::Tensor& log_probabilities, const GenerateOptions& options);

}  // namespace posenc
