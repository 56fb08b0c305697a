#include "posenc/inference/generate.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/search_reference.h"
#include "support/seed.h"
#include "transformer/tiny.h"

namespace posenc {
namespace {

using testing::found_the_same;
using testing::Op;
using testing::SearchReference;
using testing::tiny;
using testing::tiny_model;

constexpr int64_t kBegin = 1, kEnd = 2;

GenerateOptions up_to(int64_t max_length) {
  return GenerateOptions(kBegin, kEnd).max_new_tokens(max_length);
}

torch::Tensor sources() {
  return torch::tensor({{3, 4, 5, 6}, {7, 8, 0, 0}, {5, 5, 5, 0}, {9, 0, 0, 0}});
}

AttentionMask padding() { return AttentionMask::padding(sources(), 0); }

// Log probabilities (V) of the token after `begin, tokens...`, without a cache.
torch::Tensor next(TransformerImpl& model, const torch::Tensor& src,
                   const std::vector<int64_t>& tokens, const AttentionMask& beside_padding = {}) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> all = {kBegin};
  all.insert(all.end(), tokens.begin(), tokens.end());
  const auto mask = AttentionMask::padding(src, 0) & beside_padding;
  return model.forward(src, torch::tensor(all).unsqueeze(0), mask, AttentionMask::causal())
      .select(1, -1)[0]
      .log_softmax(0);
}

double log_probability(TransformerImpl& model, const torch::Tensor& src,
                       const std::vector<int64_t>& tokens,
                       const AttentionMask& beside_padding = {}) {
  double sum = 0.0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<int64_t> before(tokens.begin(), tokens.begin() + static_cast<long>(i));
    sum += next(model, src, before, beside_padding)[tokens[i]].item<double>();
  }
  return sum;
}

// Returns the number of different targets.
size_t check_greedy(Transformer& model) {
  const auto all = generate(*model, sources(), padding(), up_to(8));
  EXPECT_EQ(all.size(), 4u);
  std::map<std::vector<int64_t>, int> different;
  for (int64_t b = 0; b < static_cast<int64_t>(all.size()); ++b) {
    EXPECT_EQ(all[b].size(), 1u);
    const auto src = sources().narrow(0, b, 1);
    std::vector<int64_t> expected;
    while (expected.size() < 8 && (expected.empty() || expected.back() != kEnd)) {
      expected.push_back(next(*model, src, expected).argmax().item<int64_t>());
    }
    const double length = static_cast<double>(expected.size());
    const double score = log_probability(*model, src, expected) / length;
    SearchReference reference(model, src, AttentionMask::padding(src, 0), up_to(8), Op::Scores);
    EXPECT_TRUE(found_the_same({all[b]}, {{{expected, score}}}, reference))
        << "a batch of several lengths, and with a cache";
    ++different[expected];
  }
  return different.size();
}

TEST(Generate, GreedyTakesTheBestTokenEachTime) {
  size_t most = 0;
  for (uint64_t trial = 0; trial < 8; ++trial) {
    auto model = tiny_model(tiny(), trial);
    most = std::max(most, check_greedy(model));
  }
  EXPECT_GT(most, 1u) << "equal targets would prove little";
}

// A search applies the sources' mask to the memory as forward() does: with a causal one, token i
// sees the first i + 1 source tokens.
TEST(Generate, ReadsACausalSourceMaskAsForwardDoes) {
  auto model = tiny_model();
  const auto causal = AttentionMask::causal();
  for (const int64_t beams : {1, 3}) {
    const auto all = generate(*model, sources(), padding() & causal,
                              up_to(8).num_beams(beams).num_return_sequences(beams));
    for (int64_t b = 0; b < 4; ++b) {
      const auto src = sources().narrow(0, b, 1);
      for (const auto& found : all[b]) {
        EXPECT_NEAR(found.score * static_cast<double>(found.tokens.size()),
                    log_probability(*model, src, found.tokens, causal), 1e-4);
      }
    }
  }
}

// All sequences of at most `max_length` tokens with the stop token only at the end.
void enumerate(std::vector<int64_t> prefix, int64_t max_length, int64_t vocab,
               std::vector<std::vector<int64_t>>& found) {
  for (int64_t token = 0; token < vocab; ++token) {
    auto one = prefix;
    one.push_back(token);
    if (token == kEnd || static_cast<int64_t>(one.size()) == max_length) {
      found.push_back(one);
    } else {
      enumerate(one, max_length, vocab, found);
    }
  }
}

TEST(Generate, BeamsWideEnoughFindTheBestOfAll) {
  auto model = tiny_model();
  std::vector<std::vector<int64_t>> every;
  enumerate({}, 3, 9, every);
  for (const double penalty : {0.0, 1.0, 2.0}) {
    const auto src = sources().narrow(0, 0, 1);
    std::vector<std::pair<double, std::vector<int64_t>>> ranked;
    for (const auto& tokens : every) {
      const double length = static_cast<double>(tokens.size());
      ranked.emplace_back(log_probability(*model, src, tokens) / std::pow(length, penalty), tokens);
    }
    std::sort(ranked.rbegin(), ranked.rend());
    const auto options = up_to(3).num_beams(81).num_return_sequences(5).length_penalty(penalty);
    std::vector<Hypothesis> expected;
    for (size_t i = 0; i < 5; ++i) expected.push_back({ranked[i].second, ranked[i].first});
    SearchReference reference(model, src, {}, options, Op::Scores);
    EXPECT_TRUE(found_the_same(generate(*model, src, {}, options), {expected}, reference));
  }
}

TEST(Generate, BeamsOfABatchAreThoseOfEachSource) {
  auto model = tiny_model();
  for (const auto early :
       {EarlyStopping::WhenFull, EarlyStopping::WhenUnlikely, EarlyStopping::Never}) {
    const auto options = up_to(7).num_beams(3).num_return_sequences(3).early_stopping(early);
    const auto all = generate(*model, sources(), padding(), options);
    for (int64_t b = 0; b < 4; ++b) {
      const auto src = sources().narrow(0, b, 1);
      const auto mask = AttentionMask::padding(src, 0);
      SearchReference reference(model, src, mask, options, Op::Scores);
      EXPECT_TRUE(found_the_same({all[b]}, generate(*model, src, mask, options), reference));
      for (size_t i = 0; i < all[b].size(); ++i) {
        EXPECT_LE(all[b][i].score, all[b][0].score);
        const auto& tokens = all[b][i].tokens;
        EXPECT_NEAR(all[b][i].score * static_cast<double>(tokens.size()),
                    log_probability(*model, src, tokens), 1e-4);
      }
    }
  }
}

// Continuing until nothing can improve takes more steps, and never finds a worse sequence.
TEST(Generate, EarlyStoppingMayMissABetterSequence) {
  int better = 0, shorter = 0;
  for (int seed = 0; seed < 20; ++seed) {
    torch::manual_seed(testing::seed(seed));
    Transformer model(tiny());
    model->eval();
    double scores[2];
    int64_t steps[2];
    for (const bool early : {false, true}) {
      const auto options =
          up_to(7)
              .num_beams(2)
              .length_penalty(2.0)
              .early_stopping(early ? EarlyStopping::WhenFull : EarlyStopping::Never)
              .progress([&](const GenerateProgress& progress) {
                return (steps[early] = progress.step) > 0;
              });
      scores[early] = generate(*model, sources().narrow(0, 0, 1), {}, options)[0][0].score;
    }
    EXPECT_GE(scores[false], scores[true]);
    EXPECT_GE(steps[false], steps[true]);
    better += scores[false] > scores[true];
    shorter += steps[false] > steps[true];
  }
  EXPECT_GT(better, 0);
  EXPECT_GT(shorter, 0);
}

TEST(Generate, RenormalizesAllowedTokens) {
  auto model = tiny_model();
  const auto src = sources().narrow(0, 0, 1);
  const auto probable = next(*model, src, {}).exp();
  const int64_t best = probable.argmax().item<int64_t>();
  const auto options = up_to(1).num_beams(2).suppress_tokens({best});
  const auto left = probable.clone().index_fill(0, torch::tensor(best), 0.0);
  const double second = left.max().item<double>();
  const double lost = generate(*model, src, {}, options)[0][0].score;
  const double shared =
      generate(*model, src, {}, GenerateOptions(options).renormalize(true))[0][0].score;
  EXPECT_NEAR(lost, std::log(second), 1e-5);
  EXPECT_NEAR(shared, std::log(second / left.sum().item<double>()), 1e-5);
}

TEST(Generate, StopsAtEveryStopTokenAndAtTheLength) {
  auto model = tiny_model();
  const auto free = generate(*model, sources(), padding(), up_to(6).eos_ids({}));
  for (const auto& one : free) EXPECT_EQ(one[0].tokens.size(), 6u);
  const int64_t third = free[0][0].tokens[2];
  const auto stopped = generate(*model, sources(), padding(), up_to(6).eos_ids({kEnd, third}));
  const auto& tokens = stopped[0][0].tokens;
  EXPECT_LE(tokens.size(), 3u);
  EXPECT_TRUE(tokens.back() == third || tokens.back() == kEnd);
}

TEST(Generate, NeverWritesBannedTokens) {
  auto model = tiny_model();
  for (const int64_t beams : {1, 3}) {
    const auto free = generate(*model, sources(), padding(), up_to(6).eos_ids({}).num_beams(beams));
    const int64_t first = free[0][0].tokens[0], second = free[0][0].tokens[1];
    const auto without = generate(
        *model, sources(), padding(),
        up_to(6).eos_ids({}).num_beams(beams).suppress_tokens({first, second}).length_penalty(0.0));
    for (int64_t b = 0; b < 4; ++b) {
      const auto& tokens = without[b][0].tokens;
      ASSERT_EQ(tokens.size(), 6u);
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), first), 0);
      EXPECT_EQ(std::count(tokens.begin(), tokens.end(), second), 0);
      EXPECT_NEAR(without[b][0].score, log_probability(*model, sources().narrow(0, b, 1), tokens),
                  1e-4)
          << "the others' probabilities stay what they are";
    }
  }
}

TEST(Generate, WritesTheForcedEndAtTheLength) {
  auto model = tiny_model();
  for (const int64_t beams : {1, 3}) {
    const auto options = up_to(4).eos_ids({kEnd}).num_beams(beams).length_penalty(0.0);
    const auto ended = generate(*model, sources(), padding(),
                                GenerateOptions(options).min_new_tokens(4).forced_eos_ids({kEnd}));
    for (int64_t b = 0; b < 4; ++b) {
      auto tokens = ended[b][0].tokens;
      ASSERT_EQ(tokens.size(), 4u);
      EXPECT_EQ(tokens.back(), kEnd);
      tokens.pop_back();
      EXPECT_NEAR(ended[b][0].score, log_probability(*model, sources().narrow(0, b, 1), tokens),
                  1e-4);
    }
  }
}

TEST(Generate, SamplesFollowTheModelsDistribution) {
  auto model = tiny_model();
  const auto src = sources().narrow(0, 0, 1);
  const auto expected = next(*model, src, {}).exp();
  const int64_t count = 4000;
  const auto samples = generate(*model, src, {},
                                up_to(1).do_sample(true).num_return_sequences(count).generator(
                                    at::detail::createCPUGenerator(testing::seed(7))))[0];
  ASSERT_EQ(static_cast<int64_t>(samples.size()), count);
  auto seen = torch::zeros({9});
  for (const auto& one : samples) seen[one.tokens[0]] += 1.0 / static_cast<double>(count);
  EXPECT_LT((seen - expected).abs().max().item<double>(), 4 * std::sqrt(0.25 / count));
}

TEST(Generate, SamplingFilters) {
  auto model = tiny_model();
  const auto src = sources().narrow(0, 0, 1);
  const auto [sorted, order] = next(*model, src, {}).exp().sort(0, true);
  const auto drawn = [&, &order = order](GenerateOptions options) {
    torch::manual_seed(testing::seed(5));
    std::vector<bool> seen(9);
    const auto all = generate(*model, src, {}, options.do_sample(true).num_return_sequences(500));
    for (const auto& one : all[0]) seen[one.tokens[0]] = true;
    int64_t rank = 0;  // number of tokens seen, which must be the most probable ones
    while (rank < 9 && seen[order[rank].item<int64_t>()]) ++rank;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), rank);
    return rank;
  };
  EXPECT_EQ(drawn(up_to(1).top_k(3)), 3);
  EXPECT_EQ(drawn(up_to(1).temperature(1e-4)), 1);
  EXPECT_EQ(drawn(up_to(1).top_p(1e-6)), 1) << "one token always remains";
  const double two = sorted[0].item<double>() + sorted[1].item<double>();
  EXPECT_EQ(drawn(up_to(1).top_p(two - 1e-3)), 2);
  EXPECT_EQ(drawn(up_to(1).top_p(two + 1e-3)), 3);
}

TEST(Generate, ReportsProgressAndStopsOnRequest) {
  auto model = tiny_model();
  for (const int64_t beams : {1, 2}) {
    std::vector<int64_t> steps;
    const auto options =
        up_to(9).eos_ids({}).num_beams(beams).progress([&](const GenerateProgress& progress) {
          steps.push_back(progress.step);
          EXPECT_EQ(progress.max_new_tokens, 9);
          EXPECT_EQ(progress.sources, 4);
          return progress.step < 3;
        });
    const auto all = generate(*model, sources(), padding(), options);
    EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3}));
    for (const auto& one : all) EXPECT_EQ(one[0].tokens.size(), 3u);
  }
}

TEST(Generate, NeedsNoMaskWithoutPadding) {
  auto model = tiny_model();
  const auto src = torch::randint(1, 9, {4, 5}, torch::kLong);
  const auto options = up_to(8).num_beams(2).num_return_sequences(2);
  const auto expected = generate(*model, src, AttentionMask(), options);
  for (const auto& found : {generate(*model, src, options), generate(model, src, options),
                            generate(freeze(model), src, options)}) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t b = 0; b < found.size(); ++b) {
      ASSERT_EQ(found[b].size(), expected[b].size());
      for (size_t i = 0; i < found[b].size(); ++i)
        EXPECT_EQ(found[b][i].tokens, expected[b][i].tokens);
    }
  }
}

TEST(Generate, NeedsNoSource) {
  auto model = tiny_model();
  EXPECT_TRUE(generate(*model, torch::empty({0, 3}, torch::kLong), {}, up_to(3)).empty());
}

TEST(GenerateErrors, NamesWhatIsWrong) {
  auto model = tiny_model();
  const auto refuse = [&](const GenerateOptions& options, const char* text) {
    EXPECT_ERROR(generate(*model, sources(), padding(), options), c10::ValueError, text);
  };
  refuse(up_to(3).num_beams(0), "num_beams must be positive. Got 0");
  refuse(up_to(3).num_beams(2).num_return_sequences(3),
         "num_return_sequences must be at most num_beams 2. Got 3");
  refuse(up_to(3).num_beams(2).do_sample(true), "do_sample needs num_beams 1. Got 2");
  refuse(up_to(0), "max_new_tokens must be positive");
  refuse(up_to(17), "max_new_tokens must be at most the model's max_len 16. Got 17");
  refuse(up_to(3).temperature(0.0), "temperature must be above 0");
  refuse(up_to(3).top_k(-1), "top_k must not be negative");
  refuse(up_to(3).top_p(0.0), "top_p must lie in (0, 1]");
  refuse(up_to(3).bos_id(9), "bos_id must lie in [0, 9). Got 9");
  refuse(up_to(3).suppress_tokens({2, -1}), "each of suppress_tokens must not be negative. Got -1");
  refuse(up_to(3).forced_eos_ids({9}), "forced_eos_ids must lie in [0, 9). Got 9");
  EXPECT_ERROR(generate(*model, sources()[0], {}, up_to(3)), c10::ValueError, "must be ids (B, S)");
  model->train();
  refuse(up_to(3), "the model must be in eval mode");
  model->eval();
  model->decoder->layers[1]->train();
  refuse(up_to(3), "model->eval(). Got decoder.layers.1 in train mode");
}

}  // namespace
}  // namespace posenc
