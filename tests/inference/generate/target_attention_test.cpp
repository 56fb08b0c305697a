// What targets attend to in their sources, and the penalty of what they leave out.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "posenc/inference/freeze.h"
#include "posenc/inference/score.h"
#include "support/compare.h"
#include "transformer/tiny.h"

namespace posenc {
namespace {

using testing::kTinyFrames, testing::tiny_hearing, testing::tiny_model, testing::tiny_sounds;
using testing::tiny;
using Tokens = std::vector<int64_t>;

constexpr int64_t kStart = 1, kLast = 2;

GenerateOptions searching(int64_t most) {
  return GenerateOptions(kStart, kLast).max_new_tokens(most).return_attention(true);
}

torch::Tensor padded() { return torch::tensor({{3, 4, 5, 6}, {7, 8, 0, 0}, {0, 5, 0, 9}}); }

AttentionMask without_padding() { return AttentionMask::padding(padded(), 0); }

Tokens started(const Tokens& tokens) {
  Tokens columns = {kStart};
  columns.insert(columns.end(), tokens.begin(), tokens.end());
  return columns;
}

// The weights (T, S) of the tokens of a target, from the modules of the last layer.
torch::Tensor weights_of(TransformerImpl& model, int64_t row, const Tokens& tokens) {
  const torch::NoGradGuard no_grad;
  const auto src = padded().narrow(0, row, 1);
  const auto mask = AttentionMask::padding(src, 0);
  const auto memory = model.encode(src, mask);
  auto columns = started(tokens);
  columns.pop_back();
  auto x = model.tgt_embedding->forward(torch::tensor(columns).unsqueeze(0));
  const auto& layers = *model.decoder->layers;
  const auto at = [&](size_t i) { return layers[i]->as<TransformerDecoderLayer>(); };
  for (size_t i = 0; i + 1 < layers.size(); ++i)
    x = at(i)->forward(x, memory, AttentionMask::causal(), mask);
  auto* const last = at(layers.size() - 1);
  const auto own = last->self_attn->forward(x, x, x, AttentionMask::causal());
  x = last->norm1->forward(x + own);
  return std::get<1>(last->multihead_attn->forward_with_weights(x, memory, memory, mask))[0];
}

// Calls `check` with a model, the same one frozen, and its modules.
template <typename Check>
void with_both(const Check& check) {
  for (uint64_t trial = 0; trial < 3; ++trial) {
    auto model = tiny_model(tiny(), trial);
    check(*model, *model);
    const auto frozen = freeze(model);
    check(frozen, *model);
  }
}

TEST(TargetAttention, IsThatOfTheLastLayer) {
  with_both([](auto& model, TransformerImpl& modules) {
    for (const int64_t beams : {1, 3}) {
      const auto options = searching(7).num_beams(beams).num_return_sequences(beams);
      const auto found = generate(model, padded(), without_padding(), options);
      for (size_t b = 0; b < 3; ++b) {
        for (const auto& one : found[b]) {
          const auto expected = weights_of(modules, static_cast<int64_t>(b), one.tokens);
          EXPECT_EQ(one.attention.sizes(), expected.sizes());
          EXPECT_TRUE(torch::allclose(one.attention, expected, 1e-5, 1e-6)) << b;
        }
      }
    }
  });
}

TEST(TargetAttention, OfScoresIsThatOfTheSearch) {
  with_both([](auto& model, TransformerImpl& modules) {
    const auto found = generate(model, padded(), without_padding(), searching(7).num_beams(2));
    std::vector<Tokens> targets;
    for (const auto& of_source : found) targets.push_back(started(of_source[0].tokens));
    const auto values = score(model, padded(), without_padding(), targets);
    const auto scored = score_with_attention(model, padded(), without_padding(), targets);
    for (size_t b = 0; b < 3; ++b) {
      const auto expected = weights_of(modules, static_cast<int64_t>(b), found[b][0].tokens);
      EXPECT_EQ(scored[b].attention.sizes(), expected.sizes());
      EXPECT_TRUE(torch::allclose(scored[b].attention, expected, 1e-5, 1e-6));
      ASSERT_EQ(scored[b].log_probabilities.size(), values[b].size());
      for (size_t i = 0; i < values[b].size(); ++i)
        EXPECT_NEAR(scored[b].log_probabilities[i], values[b][i], 1e-5);
    }
    const std::vector<Tokens> empty(3, Tokens{kStart});
    for (const auto& one : score_with_attention(model, padded(), without_padding(), empty))
      EXPECT_EQ(one.attention.sizes(), (torch::IntArrayRef{0, 4}));
  });
}

// The slopes of a mask are a part of the weights, in frozen models too.
TEST(TargetAttention, OfScoresHasSlopes) {
  auto model = tiny_model(tiny(), 0);
  const auto slopes = torch::linspace(0.4, 0.9, model->decoder->options.layer().num_heads());
  const std::vector<Tokens> targets = {{1, 4, 5}, {1, 6, 3, 7}, {1, 8, 5}};
  for (const auto& own : {AttentionMask(), AttentionMask::causal(), without_padding()}) {
    const auto mask = own & AttentionMask::slopes(slopes);
    const auto expected = score_with_attention(*model, padded(), mask, targets);
    const auto without = score_with_attention(*model, padded(), own, targets);
    const auto frozen = score_with_attention(freeze(model), padded(), mask, targets);
    for (size_t b = 0; b < 3; ++b) {
      EXPECT_TRUE(torch::allclose(frozen[b].attention, expected[b].attention, 1e-5, 1e-6)) << b;
      EXPECT_FALSE(torch::allclose(without[b].attention, expected[b].attention, 1e-3, 1e-3)) << b;
    }
  }
}

// The tokens of a prefix have no weights of their own in the result.
TEST(TargetAttention, BeginsAfterThePrefix) {
  with_both([](auto& model, TransformerImpl& modules) {
    const std::vector<Tokens> prefixes = {{1, 4}, {1}, {1, 6, 3, 7}};
    for (const int64_t beams : {1, 2}) {
      const auto found = generate(model, padded(), without_padding(),
                                  searching(4).num_beams(beams).prefixes(prefixes));
      for (size_t b = 0; b < 3; ++b) {
        Tokens all(prefixes[b].begin() + 1, prefixes[b].end());
        const auto before = static_cast<int64_t>(all.size());
        const auto& tokens = found[b][0].tokens;
        all.insert(all.end(), tokens.begin(), tokens.end());
        const auto expected = weights_of(modules, static_cast<int64_t>(b), all)
                                  .narrow(0, before, static_cast<int64_t>(tokens.size()));
        EXPECT_TRUE(torch::allclose(found[b][0].attention, expected, 1e-5, 1e-6));
      }
    }
  });
}

// Features of sound have half as many positions as frames.
TEST(TargetAttention, OfScoresMayBeToFeatures) {
  const torch::NoGradGuard no_grad;
  auto model = tiny_model(tiny_hearing());
  const auto src = tiny_sounds(3);
  const std::vector<Tokens> targets = {{1, 4, 5, 2}, {1}, {1, 6, 3}};
  const auto check = [&](auto&& subject) {
    const auto values = score(subject, src, {}, targets);
    const auto scored = score_with_attention(subject, src, {}, targets);
    for (size_t b = 0; b < targets.size(); ++b) {
      const auto row = static_cast<int64_t>(b), count = std::ssize(targets[b]) - 1;
      const auto tgt = torch::tensor(targets[b]).unsqueeze(0);
      const auto all =
          model->forward(src.narrow(0, row, 1), tgt, {}, AttentionMask::causal())[0].log_softmax(1);
      ASSERT_EQ(std::ssize(values[b]), count);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_NEAR(values[b][i], all[i][targets[b][i + 1]].item<double>(), 1e-5);
        EXPECT_NEAR(scored[b].log_probabilities[i], values[b][i], 1e-5);
      }
      EXPECT_EQ(scored[b].attention.sizes(), (torch::IntArrayRef{count, kTinyFrames / 2}));
    }
    EXPECT_ERROR(score(subject, torch::zeros({3, 4}, torch::kLong), {}, targets), c10::ValueError,
                 "[score] src must be features (B, M, W), floating-point. Got CPULongType [3, 4]");
  };
  check(*model);
  check(freeze(model));
}

// Of targets without tokens too, whatever the default dtype is.
TEST(TargetAttention, IsFloat32) {
  auto model = tiny_model(tiny(), 0);
  const auto before = torch::get_default_dtype();
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  const std::vector<Tokens> empty(3, Tokens{kStart});
  const auto scored = score_with_attention(*model, padded(), without_padding(), empty);
  torch::set_default_dtype(before);
  for (const auto& one : scored) EXPECT_EQ(one.attention.scalar_type(), torch::kFloat);
}

TEST(TargetAttention, IsUndefinedUnlessWanted) {
  with_both([](auto& model, TransformerImpl&) {
    for (const int64_t beams : {1, 3}) {
      const auto with = searching(7).num_beams(beams);
      const auto expected = generate(model, padded(), without_padding(), with);
      for (const double penalty : {0.0, 0.2}) {
        const auto without =
            GenerateOptions(with).return_attention(false).coverage_penalty(penalty);
        const auto found = generate(model, padded(), without_padding(), without);
        for (size_t b = 0; b < 3; ++b) {
          EXPECT_FALSE(found[b][0].attention.defined());
          if (penalty == 0.0) {
            EXPECT_EQ(found[b][0].tokens, expected[b][0].tokens);
          }
        }
      }
    }
  });
}

double log_probability_of(TransformerImpl& model, int64_t row, const Tokens& tokens) {
  const auto src = padded().narrow(0, row, 1);
  const auto values = score(model, src, AttentionMask::padding(src, 0), {started(tokens)});
  double sum = 0.0;
  for (const double one : values[0]) sum += one;
  return sum;
}

// GNMT's formula, over the positions that are no padding.
double coverage_of(TransformerImpl& model, int64_t row, const Tokens& tokens) {
  const auto sums = weights_of(model, row, tokens).sum(0);
  double sum = 0.0;
  for (int64_t i = 0; i < sums.size(0); ++i)
    if (padded()[row][i].item<int64_t>() != 0)
      sum += std::log(std::min(sums[i].item<double>(), 1.0));
  return sum;
}

void every_target(const Tokens& before, size_t most, std::vector<Tokens>& all) {
  for (int64_t token = 0; token < 9; ++token) {
    auto one = before;
    one.push_back(token);
    if (token == kLast || one.size() == most)
      all.push_back(one);
    else
      every_target(one, most, all);
  }
}

// Beams that are wide enough find the best of all targets, whichever it is with the penalty.
TEST(CoveragePenalty, FindsTheBestOfAllTargets) {
  std::vector<Tokens> all;
  every_target({}, 2, all);
  int others = 0;
  with_both([&](auto& model, TransformerImpl& modules) {
    for (int64_t row = 0; row < 3; ++row) {
      const auto src = padded().narrow(0, row, 1);
      std::vector<std::pair<double, double>> parts;  // log probability and coverage
      for (const Tokens& tokens : all)
        parts.emplace_back(log_probability_of(modules, row, tokens),
                           coverage_of(modules, row, tokens));
      for (const double length_penalty : {0.0, 1.0}) {
        size_t plain = 0;
        for (const double penalty : {0.0, 0.7, 3.0}) {
          size_t best = 0;
          double most = -std::numeric_limits<double>::infinity();
          for (size_t i = 0; i < all.size(); ++i) {
            const auto length = static_cast<double>(all[i].size());
            const double own =
                parts[i].first / std::pow(length, length_penalty) + penalty * parts[i].second;
            if (own > most) most = own, best = i;
          }
          if (penalty == 0.0) plain = best;
          others += best != plain;
          const auto found = generate(model, src, AttentionMask::padding(src, 0),
                                      GenerateOptions(kStart, kLast)
                                          .max_new_tokens(2)
                                          .num_beams(72)
                                          .length_penalty(length_penalty)
                                          .coverage_penalty(penalty))[0][0];
          EXPECT_EQ(found.tokens, all[best]) << penalty;
          EXPECT_NEAR(found.score, most, 1e-4);
        }
      }
    }
  });
  EXPECT_GT(others, 0) << "or the penalty would decide nothing";
}

// "never" stops when no beam can come to a better score, whatever it has yet to attend to. Nearly
// no length penalty gives the scores of none, and runs to the end.
TEST(CoveragePenalty, CanStillBeWonBack) {
  const auto src = torch::randint(3, 10, {200, 5}, torch::kLong);
  with_both([&](auto& model, TransformerImpl&) {
    for (const double penalty : {0.3, 1.0}) {
      const auto with = [&](double length_penalty) {
        return generate(model, src,
                        GenerateOptions(kStart, kLast)
                            .max_new_tokens(12)
                            .num_beams(2)
                            .early_stopping(EarlyStopping::Never)
                            .length_penalty(length_penalty)
                            .coverage_penalty(penalty));
      };
      const auto found = with(0.0), expected = with(1e-12);
      for (size_t b = 0; b < found.size(); ++b)
        EXPECT_NEAR(found[b][0].score, expected[b][0].score, 1e-5) << penalty;
    }
  });
}

// A prefix covers its part of the source too; greedy search has the penalty in its score.
TEST(CoveragePenalty, CountsThePrefix) {
  with_both([](auto& model, TransformerImpl& modules) {
    for (const int64_t beams : {1, 2}) {
      const auto found =
          generate(model, padded(), without_padding(),
                   searching(4).num_beams(beams).length_penalty(0.0).coverage_penalty(0.5).prefixes(
                       std::vector<Tokens>{{1, 4, 3}}));
      for (int64_t b = 0; b < 3; ++b) {
        Tokens tokens = found[b][0].tokens;
        tokens.insert(tokens.begin(), {4, 3});
        const double before = log_probability_of(modules, b, {4, 3});
        EXPECT_NEAR(
            found[b][0].score,
            log_probability_of(modules, b, tokens) - before + 0.5 * coverage_of(modules, b, tokens),
            1e-4);
      }
    }
  });
}

TEST(CoveragePenalty, MustNotReward) {
  auto model = tiny_model();
  const auto options = [](double penalty) {
    return GenerateOptions(kStart, kLast).max_new_tokens(3).coverage_penalty(penalty);
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {-0.1, 1e31, kInfinity, std::nan("")})
    EXPECT_ERROR(generate(model, padded(), without_padding(), options(wrong)), c10::ValueError,
                 "coverage_penalty must lie between 0 and 1e+30");
}

}  // namespace
}  // namespace posenc
