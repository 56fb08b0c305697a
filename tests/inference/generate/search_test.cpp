// Searches with a decoder whose logits the test defines: ties, ends, rows that are removed.

#include "inference/generate/step_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "support/seed.h"

namespace posenc::search_test {
namespace {

constexpr int64_t kBegin = 0, kEnd = 3, kVocab = 4;
constexpr float kNever = -std::numeric_limits<float>::infinity();

using Tokens = std::vector<int64_t>;

// A decoder whose logits depend only on the target so far. It also checks the rows in select().
class Script : public StepModel {
 public:
  using Logits = std::function<std::vector<float>(int64_t source, const Tokens& before)>;

  Script(int64_t sources, const GenerateOptions& options, Logits logits, torch::Tensor src = {})
      : plan_(plan_search(options, src.defined() ? src : torch::zeros({sources, 1}, torch::kLong),
                          kVocab,
                          /*max_len=*/100, /*most_tokens=*/100)),
        logits_(std::move(logits)) {
    for (int64_t source = 0; source < sources; ++source)
      for (int64_t row = 0; row < plan_.rows_per_source; ++row) rows_.push_back({source, {}});
  }

  Hypotheses search() { return posenc::search(*this, plan_, torch::kCPU); }

  torch::Tensor step(const torch::Tensor& tokens) override {
    EXPECT_EQ(tokens.sizes(), (torch::IntArrayRef{static_cast<int64_t>(rows_.size()), 1}));
    std::vector<torch::Tensor> all;
    for (size_t row = 0; row < rows_.size(); ++row) {
      rows_[row].tokens.push_back(tokens[static_cast<int64_t>(row)].item<int64_t>());
      const auto& written = rows_[row].tokens;
      EXPECT_EQ(written.front(), kBegin);
      all.push_back(torch::tensor(
          logits_(rows_[row].source, Tokens(written.begin() + 1, written.end())), torch::kFloat));
    }
    steps_.push_back(static_cast<int64_t>(rows_.size()));
    return torch::stack(all);
  }
  void select(const torch::Tensor& rows) override {
    std::vector<Row> chosen;
    for (int64_t i = 0; i < rows.size(0); ++i) chosen.push_back(rows_.at(rows[i].item<int64_t>()));
    rows_ = std::move(chosen);
  }
  void check_unchanged() const override {}

  /// The number of rows in each step so far.
  const std::vector<int64_t>& steps() const { return steps_; }

 private:
  struct Row {
    int64_t source;
    Tokens tokens;
  };
  SearchPlan plan_;
  Logits logits_;
  std::vector<Row> rows_;
  std::vector<int64_t> steps_;
};

std::vector<Tokens> tokens_of(const std::vector<Hypothesis>& all) {
  std::vector<Tokens> tokens;
  for (const auto& one : all) tokens.push_back(one.tokens);
  return tokens;
}

GenerateOptions up_to(int64_t max_length, int64_t beams) {
  return GenerateOptions(kBegin, kEnd)
      .max_new_tokens(max_length)
      .num_beams(beams)
      .num_return_sequences(beams);
}

std::vector<float> all_alike(int64_t, const Tokens&) { return {0.0F, 0.0F, 0.0F, 0.0F}; }

// Ties are resolved by beam, then by token: during the search and at the end.
TEST(Search, TakesTheFirstOfEquals) {
  for (const int64_t beams : {1, 2, 3}) {
    const auto options = up_to(2, beams);
    Script script(2, options, all_alike);
    const auto found = script.search();
    const std::vector<Tokens> first = {{0, 0}, {0, 1}, {0, 2}};
    for (const auto& one : found)
      EXPECT_EQ(tokens_of(one), std::vector<Tokens>(first.begin(), first.begin() + beams));
    EXPECT_NEAR(found[1][0].score, -std::log(4.0), 1e-6);
  }
}

// A candidate that ends counts if it is among the best `width`, but not if it ranks after them.
TEST(Search, AnEndOutsideTheBeamsDoesNotCount) {
  const auto options = up_to(2, 2).length_penalty(0.0);
  const auto run = [&](std::vector<float> first) {
    Script script(1, options, [&](int64_t, const Tokens& before) {
      return before.empty() ? first : std::vector<float>{0.0F, -9.0F, -9.0F, -9.0F};
    });
    return tokens_of(script.search()[0]);
  };
  EXPECT_EQ(run({3.0F, 1.0F, 0.0F, 2.0F}), (std::vector<Tokens>{{0, 0}, {3}}));
  EXPECT_EQ(run({3.0F, 2.0F, 0.0F, 1.0F}), (std::vector<Tokens>{{0, 0}, {1, 0}}));
}

// Beams are reordered, and sources finish one after another.
TEST(Search, RowsFollowTheirBeams) {
  const auto options = up_to(4, 2).eos_ids({kEnd}).early_stopping(EarlyStopping::WhenFull);
  Script script(3, options, [](int64_t source, const Tokens& before) {
    if (static_cast<int64_t>(before.size()) > source) return std::vector<float>{0, 1, kNever, 9};
    if (before.empty()) return std::vector<float>{2.0F, 1.9F, 0.0F, kNever};
    // The second beam has the better continuation.
    return before.back() == 1 ? std::vector<float>{0.0F, 4.0F, 3.9F, kNever}
                              : std::vector<float>{0.1F, 0.0F, 0.0F, kNever};
  });
  const auto found = script.search();
  EXPECT_EQ(tokens_of(found[0]), (std::vector<Tokens>{{0, 3}, {1, 3}}));
  EXPECT_EQ(tokens_of(found[1]), (std::vector<Tokens>{{1, 1, 3}, {1, 2, 3}}));
  EXPECT_EQ(tokens_of(found[2]), (std::vector<Tokens>{{1, 1, 1, 3}, {1, 1, 2, 3}}));
  EXPECT_EQ(script.steps(), (std::vector<int64_t>{6, 6, 4, 2}));
}

TEST(Search, SamplesEndOnceAndComeInTheOrderDrawn) {
  torch::manual_seed(testing::seed(1));
  const auto options =
      GenerateOptions(kBegin, kEnd).max_new_tokens(6).do_sample(true).num_return_sequences(40);
  Script script(2, options, [](int64_t source, const Tokens&) {
    return std::vector<float>{1.0F, static_cast<float>(source), 0.0F, 0.5F};
  });
  for (const auto& all : script.search()) {
    ASSERT_EQ(all.size(), 40u);
    for (const auto& one : all) {
      const auto& tokens = one.tokens;
      const auto end = std::find(tokens.begin(), tokens.end(), kEnd);
      EXPECT_TRUE(end == tokens.end() ? tokens.size() == 6u : end + 1 == tokens.end());
    }
    const auto is_better = [](const auto& a, const auto& b) { return a.score > b.score; };
    EXPECT_FALSE(std::is_sorted(all.begin(), all.end(), is_better));
  }
}

// The forced end has probability 1, even with suppression or renormalisation.
TEST(Search, AForcedEndCostsNothing) {
  for (const bool renormalize : {false, true})
    for (const int64_t beams : {1, 2}) {
      const auto options =
          up_to(2, beams).length_penalty(0.0).forced_eos_ids({kEnd}).begin_suppress_tokens(
              {kEnd, 1});
      const auto changed = GenerateOptions(options).renormalize(renormalize);
      Script script(1, changed, all_alike);
      const auto found = script.search()[0];
      EXPECT_EQ(found[0].tokens, (Tokens{0, kEnd}));
      EXPECT_NEAR(found[0].score, -std::log(renormalize ? 2.0 : 4.0), 1e-6);
      EXPECT_EQ(found.back().tokens, (Tokens{beams == 1 ? 0 : 2, kEnd}));
    }
}

// A forced token makes the others impossible. remove_invalid_values makes large numbers of their
// scores, and the decay makes the score of an end that was impossible infinite.
TEST(Search, ImpossibleTokensThatHaveANumberMakeNoBeams) {
  for (const int64_t beams : {1, 2, 3}) {
    const auto options = up_to(6, beams)
                             .forced_bos_id(kEnd)
                             .min_new_tokens(3)
                             .remove_invalid_values(true)
                             .exponential_decay_length_penalty(LengthDecay{0, 1.5});
    Script script(1, options, all_alike);
    const auto found = script.search()[0];
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].tokens, Tokens{kEnd});
    EXPECT_EQ(found[0].score, 0.0);
  }
}

}  // namespace
}  // namespace posenc::search_test
