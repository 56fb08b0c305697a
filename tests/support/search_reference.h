#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <vector>

#include "posenc/inference/generate.h"
#include "support/compare.h"

namespace posenc::testing {

/// The results of a search: one list per source, best first. A score of NaN is unknown.
using Found = std::vector<std::vector<Hypothesis>>;

/// Expects the same bits, as of the same kernels that compute twice.
void expect_bit_equal(const Found& got, const Found& expected);

/// Greedy and beam search as documented for generate(), by teacher forcing in float64: no cache, no
/// kernels, and no code of the search itself.
///
/// Two searches that round differently may diverge wherever two scores are nearly equal: at the
/// end, where hypotheses change places; at the cut-off of what is returned; or midway, where
/// another prefix stays in the beam and everything after it differs. All of these amount to the
/// same thing: a search in which the log probability of each prefix is off by a little. A result is
/// therefore right if this search finds it with the log probability of each prefix moved by at most
/// half of the stated rounding, and if each reported score is that of its own tokens within the
/// rounding. Everything else is wrong: other tokens without a tie, scores of other tokens, a
/// missing best hypothesis.
class SearchReference {
 public:
  /// `mask` applies to the sources and to the memory, as in generate(). `rounding` is the allowed
  /// difference between two results, a row of the table in compare.cpp; the model's own error,
  /// some times over, is added to it.
  SearchReference(const Transformer& model, torch::Tensor src, AttentionMask mask,
                  GenerateOptions options, Op rounding);

  /// Log probability of the tokens before the length penalty; -inf if the options forbid them, for
  /// example because of a stop token before the end.
  double log_probability(int64_t source, const std::vector<int64_t>& tokens);

  /// The results of a search whose log probabilities are moved at random, differently for each
  /// seed; seed 0 does not move them.
  std::vector<Hypothesis> find(int64_t source, unsigned seed = 0);

  /// Whether the results for a source are distinct sequences that a search may end with, best
  /// first, with the scores of their tokens within the rounding. Better ones may exist.
  ::testing::AssertionResult is_legal(int64_t source, const std::vector<Hypothesis>& found);

  /// Whether a search may find these results for a source: they are legal, and none better was
  /// missed.
  ::testing::AssertionResult may_find(int64_t source, const std::vector<Hypothesis>& found);

  /// The log probability, before the length penalty, that a hypothesis reports.
  double reported(const Hypothesis& one) const;
  /// The allowed difference between reported log probabilities of a hypothesis.
  double rounding(int64_t source, const Hypothesis& one);
  bool is_greedy() const { return options_.num_beams() == 1; }

 private:
  int64_t longest() const {
    return options_.max_new_tokens().value_or(options_.max_length().value_or(21) - 1);
  }
  using Tokens = std::vector<int64_t>;
  /// Between -1 and 1, in units of half the rounding.
  using Nudge = std::function<double(const Tokens& prefix)>;
  struct Beam {
    Tokens tokens;
    double sum, moved;  // log probability, without and with its nudge
  };

  AttentionMask mask_of(int64_t source, int64_t queries) const;
  /// Computes next_ for these targets of a source and all their prefixes.
  void learn(int64_t source, const std::vector<Tokens>& targets);
  std::vector<double> next_of(const torch::Tensor& logits, int64_t length) const;
  std::vector<Beam> candidates(int64_t source, const std::vector<Beam>& live, const Nudge& nudge);
  bool is_done(const std::vector<Beam>& live, const std::vector<Beam>& finished,
               int64_t length) const;
  std::vector<Hypothesis> search(int64_t source, const Nudge& nudge);
  double move_of(int64_t source, const Hypothesis& one);
  double half_rounding(double sum) const;
  double penalty(int64_t length) const;
  bool stops(int64_t token) const;

  Transformer own_, model_;  // the given model, and its copy in float64
  torch::Tensor src_, own_memory_, memory_;
  AttentionMask mask_;
  GenerateOptions options_;
  Op rounding_;
  double own_error_ = 0.0;  // the largest of a log probability of own_ so far
  std::map<std::pair<int64_t, Tokens>, std::vector<double>> next_;  // distribution after a prefix
};

/// Whether two searches have found the same, except for ties. If the tokens of `got` and `expected`
/// differ, both must agree with the reference. If they do not differ, both may be wrong in the same
/// way: the results must be legal and, for greedy searches and the last source, those that the
/// reference finds.
::testing::AssertionResult found_the_same(const Found& got, const Found& expected,
                                          SearchReference& reference);

}  // namespace posenc::testing
