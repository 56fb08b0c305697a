#pragma once

#include <vector>

#include "posenc/models/generate.h"

namespace posenc {

using Hypotheses = std::vector<std::vector<Hypothesis>>;  // one list a source

/// What a search over `rows_per_source` targets a source begins with.
struct Search {
  TransformerImpl& model;
  const GenerateOptions& options;
  int64_t sources;
  int64_t rows_per_source;
  DecoderCache cache;    ///< rows of one source stand together
  torch::Tensor tokens;  ///< (rows, 1), what the next step takes

  /// Log probabilities (rows, V) of what follows `tokens`.
  torch::Tensor step();
  bool stops(int64_t token) const;
  double score(double log_probability, int64_t length) const;
  /// Calls the caller's progress; false ends the search.
  bool go_on(int64_t step, int64_t finished) const;
};

/// The best beams.
Hypotheses beam_search(Search& search);

/// The best token of each row, or a drawn one; one row a sequence that is returned.
Hypotheses row_search(Search& search);

/// One id for each row of log probabilities (R, V), drawn as the options say: (R).
torch::Tensor draw(const torch::Tensor& log_probabilities, const GenerateOptions& options);

}  // namespace posenc
