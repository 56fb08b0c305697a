// The comparison of searches: what it must accept, and what it must reject.

#include "support/search_reference.h"

#include <gtest/gtest.h>

#include "inference/models.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

torch::Tensor one_source() { return torch::tensor({{3, 4, 5, 6}}); }

GenerateOptions three_beams() {
  return GenerateOptions(kBegin, kEnd).max_new_tokens(6).num_beams(4).num_return_sequences(3);
}

Transformer model_of(unsigned seed) {
  torch::manual_seed(seed);
  Transformer model(tiny());
  model->eval();
  return model;
}

Found search(Transformer model, const GenerateOptions& options) {
  return generate(*model, one_source(), {}, options);
}

SearchReference reference_of(const Transformer& model, const GenerateOptions& options) {
  return {model, one_source(), {}, options, Op::Scores};
}

TEST(SearchReference, FindsWhatEverySearchFinds) {
  Dice dice(1);
  for (unsigned seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    auto model = any_model(dice, seed);
    const auto src = any_ids(dice, dice(1, 4), dice(1, 9), dice.coin());
    const auto mask = AttentionMask::padding(src, kPad);
    auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(dice(1, 9)).num_beams(dice(1, 5));
    options.num_return_sequences(dice(1, options.num_beams())).renormalize(dice.coin());
    options.early_stopping(static_cast<EarlyStopping>(dice(0, 2)));
    options.length_penalty(std::vector<double>{1.0, 0.0, -1.0, 2.0}[dice(0, 3)]);
    if (dice.coin()) {  // most tokens are stop tokens, which crowd the end of the beam
      std::vector<int64_t> most = {kEnd};
      for (int64_t i = 5; i < model->options.tgt_vocab(); ++i)
        if (i % 3 != 0) most.push_back(i);
      options.eos_ids(most);
    }
    if (dice.coin()) options.suppress_tokens({kPad, 6});
    if (dice.coin()) options.forced_eos_ids({kEnd});
    SearchReference reference(model, src, mask, options, Op::Scores);
    const auto found = generate(*model, src, mask, options);
    for (int64_t b = 0; b < src.size(0); ++b)
      EXPECT_TRUE(reference.may_find(b, found[b])) << "beams " << options.num_beams();
  }
}

TEST(SearchReference, RefusesWhatNoSearchFinds) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    const auto model = model_of(seed);
    const auto options = three_beams();
    auto reference = reference_of(model, options);
    const Found right = search(model, options);
    ASSERT_EQ(right[0].size(), 3u);
    ASSERT_GT(right[0][0].score, right[0][1].score + 1e-3) << "no ties here";
    ASSERT_TRUE(found_the_same(right, right, reference));
    const auto refuse = [&](const char* what, auto change) {
      Found wrong = right;
      change(wrong[0]);
      EXPECT_FALSE(found_the_same(wrong, right, reference)) << what;
      EXPECT_FALSE(found_the_same(right, wrong, reference)) << what;
    };
    using List = std::vector<Hypothesis>;
    refuse("another token", [](List& all) { all[1].tokens[0] = (all[1].tokens[0] + 1) % 9; });
    refuse("another score", [](List& all) { all[1].score += 1e-3; });
    refuse("a swapped pair", [](List& all) { std::swap(all[0], all[1]); });
    refuse("swapped tokens", [](List& all) { std::swap(all[0].tokens, all[1].tokens); });
    refuse("one twice", [](List& all) { all[1] = all[0]; });
    refuse("an end that is missing", [](List& all) { all[0].tokens.pop_back(); });
    refuse("one less", [](List& all) { all.pop_back(); });
    const auto four = search(model, GenerateOptions(options).num_return_sequences(4));
    refuse("the best is missing",
           [&](List& all) { all.assign(four[0].begin() + 1, four[0].end()); });
    refuse("a greedy one", [&](List& all) {
      all[2] = search(model, GenerateOptions(options).num_beams(1).num_return_sequences(1))[0][0];
      all[2].score -= 1e-3;
    });
  }
}

// A model in which another token ties with the best first one: its logit is greater by `gap`, and
// the decoder treats it differently, so that a different sequence follows.
Transformer with_near_tie(unsigned seed, double gap) {
  auto model = model_of(seed);
  const torch::NoGradGuard no_grad;
  const auto first =
      search(model, GenerateOptions(kBegin, kEnd).max_new_tokens(1).eos_ids({}))[0][0];
  const int64_t token = first.tokens[0], counterpart = token == 8 ? 7 : 8;
  model->final_layer->weight[counterpart] = model->final_layer->weight[token];
  model->final_layer->bias[counterpart] = model->final_layer->bias[token] + gap;
  return model;
}

TEST(SearchReference, TakesEitherSideOfATie) {
  int midway = 0;
  for (unsigned seed = 0; seed < 8; ++seed)
    for (const int64_t beams : {1, 2, 3}) {
      SCOPED_TRACE(seed * 10 + static_cast<unsigned>(beams));
      const auto options = GenerateOptions(kBegin, kEnd)
                               .max_new_tokens(6)
                               .num_beams(beams)
                               .num_return_sequences(beams)
                               .eos_ids({});
      const Found below = search(with_near_tie(seed, -2e-5), options);
      const Found above = search(with_near_tie(seed, 2e-5), options);
      auto reference = reference_of(with_near_tie(seed, 0.0), options);
      EXPECT_TRUE(found_the_same(below, above, reference));
      EXPECT_TRUE(found_the_same(above, below, reference));
      midway += std::abs(below[0][0].score - above[0][0].score) > 1e-2;
      // Without a tie, the other result must be rejected.
      auto distinct = reference_of(with_near_tie(seed, 1e-2), options);
      if (below[0][0].tokens == above[0][0].tokens) continue;
      EXPECT_FALSE(distinct.may_find(0, below[0]));
    }
  EXPECT_GT(midway, 0) << "ties of whole sequences alone would prove little";
}

TEST(SearchReference, ScoresThatAreNotKnownAreNotCompared) {
  const auto model = model_of(1);
  auto reference = reference_of(model, three_beams());
  const Found right = search(model, three_beams());
  Found tokens = right;
  for (auto& one : tokens[0]) one.score = std::nan("");
  EXPECT_TRUE(found_the_same(right, tokens, reference));
  EXPECT_FALSE(found_the_same(tokens, right, reference)) << "what is tested knows its scores";
  std::swap(tokens[0][0], tokens[0][2]);
  EXPECT_FALSE(found_the_same(right, tokens, reference));
}

}  // namespace
}  // namespace posenc::testing
