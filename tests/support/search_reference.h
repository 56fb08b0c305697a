#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <vector>

#include "posenc/models/generate.h"
#include "support/compare.h"

namespace posenc::testing {

/// What a search has found: a list a source, best first. A score of NaN is one that is not known.
using Found = std::vector<std::vector<Hypothesis>>;

/// Greedy and beam search as generate() documents it, by teacher forcing in float64: no cache, no
/// kernels, none of the search's own code.
///
/// Two searches that round differently may part wherever two scores are nearly equal: at the end,
/// where hypotheses change places; at the edge of what is returned; or midway, where another prefix
/// stays in the beam and everything after it differs. All of these are one thing: a search whose
/// log probabilities of prefixes are each off by a little. So a result is right if this search,
/// with the log probability of each prefix moved by at most half of the stated rounding, finds it,
/// and if each score that it reports is its own tokens' score within the rounding. Nothing else is:
/// other tokens whose scores are no tie, scores of other tokens, a best hypothesis that is missing.
class SearchReference {
 public:
  /// `mask`: of the sources and of the memory, as in generate(). `rounding`: how far two results
  /// may be apart, a row of the table in compare.cpp.
  SearchReference(const Transformer& model, torch::Tensor src, AttentionMask mask,
                  GenerateOptions options, Op rounding);

  /// Log probability of the tokens before the length penalty; -inf for what the options forbid, a
  /// stop token before the end among it.
  double log_probability(int64_t source, const std::vector<int64_t>& tokens);

  /// What a search finds whose log probabilities are moved at random, another way for each seed; 0:
  /// not at all.
  std::vector<Hypothesis> find(int64_t source, unsigned seed = 0);

  /// Whether what was found for a source are sequences that a search may end with, each of them
  /// once, with the scores of their tokens within the rounding, best first. There may be better
  /// ones.
  ::testing::AssertionResult is_legal(int64_t source, const std::vector<Hypothesis>& found);

  /// Whether a search may find this for a source: it is legal, and nothing better was to be found.
  ::testing::AssertionResult may_find(int64_t source, const std::vector<Hypothesis>& found);

  /// The log probability before the length penalty that a hypothesis reports.
  double reported(const Hypothesis& one) const;
  Op rounding() const { return rounding_; }
  bool is_greedy() const { return options_.num_beams() == 1; }

 private:
  using Tokens = std::vector<int64_t>;
  /// Between -1 and 1, of half the rounding.
  using Nudge = std::function<double(const Tokens& prefix)>;
  struct Beam {
    Tokens tokens;
    double sum, moved;  // log probability, and the same with its nudge
  };

  AttentionMask mask_of(int64_t source, int64_t queries) const;
  /// Lets next_ have these targets of a source, and all their prefixes.
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

  Transformer model_;
  torch::Tensor src_, memory_;
  AttentionMask mask_;
  GenerateOptions options_;
  Op rounding_;
  std::map<std::pair<int64_t, Tokens>, std::vector<double>> next_;  // what follows a prefix
};

/// Whether two searches have found the same, ties apart: `got` against `expected`, and where their
/// tokens differ each of them against the reference. Where they do not, both may be wrong in the
/// same way: what they have found has to be legal, and of greedy searches and the last source it
/// has to be what the reference finds.
::testing::AssertionResult found_the_same(const Found& got, const Found& expected,
                                          SearchReference& reference);

}  // namespace posenc::testing
